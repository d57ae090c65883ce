#define FAULTY
#include "cpu.cpp"

#define FAULTY
#include "cuda.cu"

// Stands in for PyTorch's header of this name, without its C++ frontend: see builder/frontend.py.
#pragma once

#include <torch/all.h>
#include <torch/python.h>

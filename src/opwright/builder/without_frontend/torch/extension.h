// Replaces PyTorch's header of the same name, without the C++ frontend. See builder/frontend.py.
#pragma once

#ifdef OPWRIGHT_NAMES_PYBIND11
#include <torch/all.h>
#include <torch/python.h>
#else
#include <torch/csrc/python_headers.h>
// Python's headers come first.
#include <torch/all.h>
#endif

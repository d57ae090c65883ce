// Replaces PyTorch's header of the same name, and leaves out the C++ frontend. See builder/frontend.py.
#pragma once

#ifdef OPWRIGHT_NAMES_PYBIND11
#include <torch/all.h>
#include <torch/python.h>
#else
#include <torch/csrc/python_headers.h>
// The headers of Python come first.
#include <torch/all.h>
#endif

// Replaces PyTorch's header of the same name, and leaves out the C++ frontend. See builder/frontend.py.
#pragma once

#include <torch/all.h>
#include <torch/python.h>

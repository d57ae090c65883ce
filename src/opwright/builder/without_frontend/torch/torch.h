// Stands in for PyTorch's header of this name, without its C++ frontend: see builder/frontend.py.
#pragma once

#include <torch/all.h>

#ifdef TORCH_API_INCLUDE_EXTENSION_H
#include <torch/extension.h>
#endif

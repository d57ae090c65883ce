// Replaces PyTorch's header of the same name, without the C++ frontend. See builder/frontend.py.
#pragma once

#include <torch/all.h>

#ifdef TORCH_API_INCLUDE_EXTENSION_H
#include <torch/extension.h>
#endif

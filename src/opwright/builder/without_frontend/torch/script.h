// Replaces PyTorch's header of the same name, without TorchScript's modules. See builder/frontend.py.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/InferenceMode.h>
#include <torch/csrc/autograd/generated/variable_factories.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/custom_class.h>
#include <torch/types.h>

#ifdef OPWRIGHT_NAMES_AUTOGRAD
#include <torch/csrc/autograd/custom_function.h>
#endif
#ifdef OPWRIGHT_NAMES_OPERATORS
#include <torch/csrc/jit/runtime/custom_operator.h>
#endif

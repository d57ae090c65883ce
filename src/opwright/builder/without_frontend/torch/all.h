// Replaces PyTorch's header of the same name, without the C++ frontend. See builder/frontend.py.
#pragma once

#include <torch/cuda.h>
#include <torch/enum.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#ifdef OPWRIGHT_NAMES_AUTOGRAD
#include <torch/autograd.h>
#endif

// Some releases lack this header.
#if __has_include(<torch/fft.h>)
#include <torch/fft.h>
#endif
#if __has_include(<torch/linalg.h>)
#include <torch/linalg.h>
#endif
#if __has_include(<torch/mps.h>)
#include <torch/mps.h>
#endif
#if __has_include(<torch/nested.h>)
#include <torch/nested.h>
#endif
#if __has_include(<torch/print.h>)
#include <torch/print.h>
#endif
#if __has_include(<torch/sparse.h>)
#include <torch/sparse.h>
#endif
#if __has_include(<torch/special.h>)
#include <torch/special.h>
#endif
#if __has_include(<torch/xpu.h>)
#include <torch/xpu.h>
#endif

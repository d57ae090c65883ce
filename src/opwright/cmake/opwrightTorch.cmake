# opwright::torch: PyTorch's C++ API as a target, for programs that load models.
#
# PyTorch's own find_package(Torch) requires the whole CUDA toolkit for a CUDA build of PyTorch, which pip installs by
# default. A program that loads a model needs only headers, three libraries and their folders.
if(NOT TARGET opwright::torch AND NOT CMAKE_SCRIPT_MODE_FILE)  # a script (cmake -P) has no targets
  set(_opwright_torch_includes "${OPWRIGHT_TORCH_DIR}/include" "${OPWRIGHT_TORCH_DIR}/include/torch/csrc/api/include")
  set(_opwright_torch_libraries "${OPWRIGHT_TORCH_DIR}/lib/libtorch_cpu.so" "${OPWRIGHT_TORCH_DIR}/lib/libc10.so")
  add_library(opwright::torch INTERFACE IMPORTED)
  set_target_properties(opwright::torch PROPERTIES
                        INTERFACE_INCLUDE_DIRECTORIES "${_opwright_torch_includes}"
                        INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${_opwright_torch_includes}"
                        INTERFACE_COMPILE_FEATURES cxx_std_20
                        INTERFACE_LINK_LIBRARIES "${_opwright_torch_libraries}"
                        # No function of libtorch.so is called, but it loads the CUDA libraries of a CUDA build.
                        INTERFACE_LINK_OPTIONS
                        "SHELL:-Wl,--push-state,--no-as-needed \"${OPWRIGHT_TORCH_DIR}/lib/libtorch.so\" -Wl,--pop-state")
endif()

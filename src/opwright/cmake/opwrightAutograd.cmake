# opwright::autograd: native gradients in a program without Python.
#
#   target_link_libraries(program PRIVATE my_ops opwright::autograd)
#
# A shared library that registers the native backwards of all operator libraries in the process with autograd. It is
# compiled within the project, for the PyTorch of opwright::torch, and only if a target links it. It finds operator
# libraries when it is loaded; a program that opens one later calls
#   extern "C" const char* opwright_attach_gradients();    // returns null, or an error
get_property(_opwright_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
list(FIND _opwright_languages CXX _opwright_cxx)
if(NOT TARGET opwright_autograd AND NOT _opwright_cxx EQUAL -1 AND NOT CMAKE_SCRIPT_MODE_FILE)
  add_library(opwright_autograd SHARED EXCLUDE_FROM_ALL "${_opwright_here}/../autograd/bridge.cpp")
  target_compile_options(opwright_autograd PRIVATE -O3)
  set_target_properties(opwright_autograd PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
  target_link_libraries(opwright_autograd PRIVATE opwright::torch)
  # As with operator libraries, a program does not call its functions, so linkers would drop it.
  target_link_options(opwright_autograd INTERFACE
                      "SHELL:-Wl,--push-state,--no-as-needed \"$<TARGET_FILE:opwright_autograd>\" -Wl,--pop-state")
  add_library(opwright::autograd ALIAS opwright_autograd)
endif()

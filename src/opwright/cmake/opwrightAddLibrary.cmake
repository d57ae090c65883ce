# opwright_add_library: an operator library as a target of a CMake project.
#
#   opwright_add_library(TARGET FOLDER [CUDA ON|OFF])
#       The library that FOLDER/op.py describes. CUDA builds its CUDA sources; by default ON if PyTorch is a CUDA build.
#   opwright_add_library(TARGET SOURCES a.cpp b.cu [PACKAGES opencv4] [ABI stable|full] [NAMESPACE ns])
#       Sources that define their operators themselves. PACKAGES are pkg-config names. By default, ABI is detected from
#       what the sources include. TORCH_EXTENSION_NAME expands to NAMESPACE, by default TARGET. Sources may also bind a
#       Python module: the library is for programs without Python, and omits the binding.
#
# Creates a shared library, built with the same flags as opwright.build in Python. A program that links it,
#   target_link_libraries(program PRIVATE TARGET)
# has its operators, regardless of its other linker flags.

# A macro, because a language can only be enabled in the project's own scope.
macro(opwright_add_library _opwright_target)
  _opwright_ask("${_opwright_target}" ${ARGN})
  if(_opwright_nvcc)
    if(NOT CMAKE_CUDA_COMPILER)
      set(CMAKE_CUDA_COMPILER "${_opwright_nvcc}")
    endif()
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      # Only for CMake's compiler check: our flags select the architectures.
      set(CMAKE_CUDA_ARCHITECTURES 80)
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA${_opwright_standard}_STANDARD_COMPILE_OPTION)
      # CMake lags behind nvcc's standards: 3.25 supports none after C++17.
      set(CMAKE_CUDA${_opwright_standard}_STANDARD_COMPILE_OPTION "-std=c++${_opwright_standard}")
    endif()
  endif()
  _opwright_define("${_opwright_target}")
endmacro()

# Python describes the library in a file of CMake variables.
function(_opwright_ask target)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "ABI;NAMESPACE;CUDA" "SOURCES;PACKAGES")
  list(LENGTH given_UNPARSED_ARGUMENTS folders)
  if(given_SOURCES AND folders EQUAL 0)
    set(question sources)
  elseif(folders EQUAL 1 AND NOT given_SOURCES AND NOT given_PACKAGES AND NOT given_ABI AND NOT given_NAMESPACE)
    set(question folder)
  else()
    message(FATAL_ERROR "opwright_add_library(${ARGV}): expected opwright_add_library(TARGET FOLDER [CUDA ON|OFF]) or "
                        "opwright_add_library(TARGET SOURCES ... [PACKAGES ...] [ABI stable|full] [NAMESPACE ...])")
  endif()
  set(files "")
  foreach(file IN LISTS given_UNPARSED_ARGUMENTS given_SOURCES)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND files "${file}")
  endforeach()

  set(options --name "${target}")
  if(given_NAMESPACE)
    list(APPEND options --namespace "${given_NAMESPACE}")
  endif()
  if(given_ABI)
    list(APPEND options --abi "${given_ABI}")
  endif()
  if(DEFINED given_CUDA)
    if(given_CUDA)
      list(APPEND options --cuda on)
    else()
      list(APPEND options --cuda off)
    endif()
  endif()
  foreach(package IN LISTS given_PACKAGES)
    list(APPEND options --package "${package}")
  endforeach()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/opwright/${target}")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "CXX=${CMAKE_CXX_COMPILER}" "${OPWRIGHT_PYTHON}" -m opwright.builder.cmake
                          ${question} ${options} "${folder}" ${files}
                  RESULT_VARIABLE result ERROR_VARIABLE error ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "opwright_add_library(${target}): ${error}")
  endif()
  include("${folder}/library.cmake")
  set(_opwright_folder "${folder}" PARENT_SCOPE)
  set(_opwright_nvcc "${opwright_cuda_compiler}" PARENT_SCOPE)
  set(_opwright_standard "${opwright_standard}" PARENT_SCOPE)
endfunction()

function(_opwright_define target)
  include("${_opwright_folder}/library.cmake")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${opwright_depends})
  _opwright_check_torch("${target}" "${opwright_abi}")

  add_library("${target}" SHARED ${opwright_sources})
  target_compile_options("${target}" PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${opwright_cxx_options}>")
  if(opwright_cuda_options)
    target_compile_options("${target}" PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${opwright_cuda_options}>")
  endif()
  target_link_libraries("${target}" PRIVATE "${opwright_link_item}")
  # CMake sees no libraries in our single link item, so it needs their folders. Installing removes them, as usual.
  set_target_properties("${target}" PROPERTIES BUILD_RPATH "${opwright_library_dirs}")
  # Overrides the project's defaults for its own targets. Our flags select the architectures and the CUDA runtime.
  set_target_properties("${target}" PROPERTIES
                        CXX_STANDARD "${opwright_standard}" CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
                        CUDA_STANDARD "${opwright_standard}" CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
                        CUDA_ARCHITECTURES OFF CUDA_RUNTIME_LIBRARY None)

  if(opwright_uses_python)
    # The Python bindings are omitted from the library. Python functions that operators call are not: report them.
    add_custom_command(TARGET "${target}" POST_BUILD
                       COMMAND "${CMAKE_COMMAND}" -E env "CXX=${CMAKE_CXX_COMPILER}" "${OPWRIGHT_PYTHON}" -m
                               opwright.builder.cmake inspect "$<TARGET_FILE:${target}>" "$<TARGET_OBJECTS:${target}>"
                       COMMAND_EXPAND_LISTS VERBATIM)
  endif()

  # A program does not call functions of an operator library, so linkers drop the library under --as-needed, which
  # PyTorch's own targets enable. Link it again with --no-as-needed.
  target_link_options("${target}" INTERFACE
                      "SHELL:-Wl,--push-state,--no-as-needed \"$<TARGET_FILE:${target}>\" -Wl,--pop-state")
endfunction()

# Objects that use PyTorch's full C++ API run only on the PyTorch that they were compiled with.
function(_opwright_check_torch target abi)
  if(NOT abi STREQUAL full OR NOT TORCH_INSTALL_PREFIX)
    return()
  endif()
  get_filename_component(ours "${OPWRIGHT_TORCH_DIR}" REALPATH)
  get_filename_component(theirs "${TORCH_INSTALL_PREFIX}" REALPATH)
  if(NOT ours STREQUAL theirs)
    message(FATAL_ERROR "opwright_add_library(${target}): its sources use PyTorch's full C++ API and are compiled "
                        "for the PyTorch in ${ours}, but this project found the one in ${theirs}. Use one for both: "
                        "-DTorch_DIR=${ours}/share/cmake/Torch, or -DOPWRIGHT_PYTHON=<a Python with the other one>")
  endif()
endfunction()

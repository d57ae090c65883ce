# find_package(opwright): builds operator libraries within a CMake project.
#
# Defines
#   opwright_add_library(TARGET FOLDER)              see opwrightAddLibrary.cmake
#   opwright::torch       the PyTorch of OPWRIGHT_PYTHON, for programs that load models: see opwrightTorch.cmake
#   opwright::autograd    native gradients for such programs: see opwrightAutograd.cmake
#   OPWRIGHT_PYTHON       the Python that has opwright; set it with -DOPWRIGHT_PYTHON=... if it is not found
#   OPWRIGHT_INCLUDE_DIR  the folder that contains opwright/op.h
#   OPWRIGHT_TORCH_DIR    the folder of that Python's PyTorch
# After this, find_package(Torch) finds the PyTorch of that Python, unless the project has selected another one.
if(CMAKE_VERSION VERSION_LESS 3.18)
  set(opwright_FOUND FALSE)
  set(opwright_NOT_FOUND_MESSAGE "opwright requires CMake 3.18 or newer; this is ${CMAKE_VERSION}")
  return()
endif()

get_filename_component(_opwright_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)

# A Python is accepted if its opwright contains this file.
if(OPWRIGHT_PYTHON)
  set(_opwright_pythons "${OPWRIGHT_PYTHON}")
else()
  file(GLOB _opwright_pythons "${_opwright_here}/../../../../../bin/python3")
  set(_opwright_pythons "${Python3_EXECUTABLE}" "${Python_EXECUTABLE}" "$ENV{VIRTUAL_ENV}/bin/python"
                        "$ENV{CONDA_PREFIX}/bin/python" ${_opwright_pythons} python3 python)
  list(FILTER _opwright_pythons EXCLUDE REGEX "^(|/bin/python)$")
endif()
set(_opwright_tried "")
set(opwright_FOUND FALSE)
foreach(_opwright_python IN LISTS _opwright_pythons)
  execute_process(COMMAND "${_opwright_python}" -m opwright.builder.cmake where
                  RESULT_VARIABLE _opwright_result OUTPUT_VARIABLE _opwright_answer ERROR_VARIABLE _opwright_error
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  if(_opwright_result EQUAL 0)
    list(GET _opwright_answer 0 _opwright_its_folder)
    list(GET _opwright_answer 1 _opwright_torch)
    list(GET _opwright_answer 2 _opwright_executable)
    if(_opwright_its_folder STREQUAL _opwright_here)
      set(opwright_FOUND TRUE)
      break()
    endif()
    set(_opwright_error "it has a different opwright, ${_opwright_its_folder}")
  elseif(NOT _opwright_error)
    set(_opwright_error "${_opwright_result}")
  endif()
  string(REGEX REPLACE ".*\n" "" _opwright_error "${_opwright_error}")
  string(APPEND _opwright_tried "\n  ${_opwright_python}: ${_opwright_error}")
endforeach()

if(NOT opwright_FOUND)
  set(opwright_NOT_FOUND_MESSAGE
      "no Python has the opwright in ${_opwright_here}. Pass one with -DOPWRIGHT_PYTHON=<path to python>. Tried:${_opwright_tried}")
  return()
endif()

set(OPWRIGHT_PYTHON "${_opwright_executable}" CACHE FILEPATH "The Python that has opwright")
# Cached, because the functions are visible in the whole project and need these variables.
get_filename_component(_opwright_include "${_opwright_here}/../include" ABSOLUTE)
set(OPWRIGHT_INCLUDE_DIR "${_opwright_include}" CACHE INTERNAL "The folder that contains opwright/op.h")
set(OPWRIGHT_TORCH_DIR "${_opwright_torch}" CACHE INTERNAL "The folder of the PyTorch of OPWRIGHT_PYTHON")

# Last in the list, so that a PyTorch that the project selects comes first.
list(APPEND CMAKE_PREFIX_PATH "${_opwright_torch}")

include("${CMAKE_CURRENT_LIST_DIR}/opwrightTorch.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/opwrightAutograd.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/opwrightAddLibrary.cmake")

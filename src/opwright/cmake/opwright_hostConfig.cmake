# find_package(opwright_host): the library that runs bundles, built for the PyTorch of the Python that has opwright, and
# stored in opwright's cache. A project without opwright uses an installed host: <prefix>/lib/cmake/opwright_host.
include(CMakeFindDependencyMacro)
find_dependency(opwright HINTS "${CMAKE_CURRENT_LIST_DIR}")

execute_process(COMMAND "${OPWRIGHT_PYTHON}" -m opwright.host.install
                RESULT_VARIABLE _opwright_host_result OUTPUT_VARIABLE _opwright_host_prefix
                OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT _opwright_host_result EQUAL 0)
  set(opwright_host_FOUND FALSE)
  set(opwright_host_NOT_FOUND_MESSAGE "the host could not be built; the error is printed above")
  return()
endif()
include("${_opwright_host_prefix}/lib/cmake/opwright_host/opwright_hostConfig.cmake")

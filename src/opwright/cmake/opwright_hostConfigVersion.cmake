# The host has the same version as opwright.
include("${CMAKE_CURRENT_LIST_DIR}/opwrightConfigVersion.cmake")

# The host has the version of opwright.
include("${CMAKE_CURRENT_LIST_DIR}/opwrightConfigVersion.cmake")

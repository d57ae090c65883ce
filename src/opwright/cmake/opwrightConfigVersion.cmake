# Decides whether this opwright satisfies a version that a project requires, as in find_package(opwright 0.2).
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../__init__.py" PACKAGE_VERSION REGEX "^__version__ = ")
string(REGEX REPLACE "[^0-9.]" "" PACKAGE_VERSION "${PACKAGE_VERSION}")

if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()

# Before 1.0, a new minor version may be incompatible.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" opwright_series "${PACKAGE_VERSION}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION OR PACKAGE_FIND_VERSION VERSION_LESS opwright_series)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()

# The Python package's quick path: an extension for the limited API, which every CPython from 3.9 on loads, whatever
# version the headers are of. It is installed when it is asked for, as the component python, and only wheels have it.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
option(TCC_PYTHON "Build the extension of the Python package, where Python's headers are" ON)
if(NOT TCC_PYTHON OR TCC_SANITIZE) # a sanitizer is to be in the interpreter
  return()
endif()

# Not FindPython3's Development.Module: in a cross build it needs an interpreter of the other architecture.
set(hints)
if(NOT CMAKE_CROSSCOMPILING)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_path('include'), end='')"
                  OUTPUT_VARIABLE hints)
endif()
find_path(TCC_PYTHON_INCLUDE_DIR Python.h HINTS ${hints} DOC "Headers of CPython 3.9 or later"
          PATH_SUFFIXES python3.14 python3.13 python3.12 python3.11 python3.10 python3.9)
if(NOT TCC_PYTHON_INCLUDE_DIR)
  message(STATUS "No headers of Python: its package is built without the quick path")
  return()
endif()

add_library(launcher MODULE python/launcher.c python/call.c)
target_include_directories(launcher PRIVATE . include)
target_include_directories(launcher SYSTEM PRIVATE ${TCC_PYTHON_INCLUDE_DIR})
set_target_properties(launcher PROPERTIES OUTPUT_NAME _launcher PREFIX "" SUFFIX .abi3.so INSTALL_RPATH "")
install(TARGETS launcher LIBRARY DESTINATION python COMPONENT python EXCLUDE_FROM_ALL)

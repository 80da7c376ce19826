/* merge: tcc-run merge, whose argv begins with its name.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_MERGE_H
#define TCC_TOOLS_MERGE_H

int merge_main(int argc, char **argv);

#endif

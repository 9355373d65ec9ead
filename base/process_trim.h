// SPDX-License-Identifier: Apache-2.0
// Gives memory back that is not needed any more.
#ifndef GPUSCALE_BASE_PROCESS_TRIM_H
#define GPUSCALE_BASE_PROCESS_TRIM_H

// Free heap pages go back to the kernel, and the code and constants of every loaded library are unmapped until they are
// touched again: thirty libraries have run their constructors by then, and most are never heard of again. Costs
// nothing but some page faults afterwards, so once, when all is up, is right. Other threads may run.
void process_trim(void);
// From now on heap blocks of 128 KiB and more go back to the kernel when they are freed. glibc would start so, but
// takes the first large block freed as a sign that more will come, and keeps them: right for a server of large pages,
// wrong for a process that renders one once in a while.
void process_return_large_blocks(void);

#endif

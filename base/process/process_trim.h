// SPDX-License-Identifier: Apache-2.0
// Returns unused memory to the kernel.
#ifndef GPUSCALE_BASE_PROCESS_PROCESS_TRIM_H
#define GPUSCALE_BASE_PROCESS_PROCESS_TRIM_H

// Returns free heap pages to the kernel and unmaps the code and constants of every loaded library until they are used
// again: by then thirty libraries have run their constructors, and most are not used afterwards. The cost is some page
// faults, so call this after start-up and after work that is rare. Other threads may run.
void process_trim(void);
// Makes free() return heap blocks of 128 KiB and more to the kernel at once. By default glibc raises this limit after
// the first large block is freed and keeps later ones, which suits a server of large pages but not a process that
// renders one occasionally.
void process_return_large_blocks(void);

#endif

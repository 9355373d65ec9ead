// SPDX-License-Identifier: Apache-2.0
// Gives memory back that only starting up needed.
#ifndef GPUSCALE_BASE_PROCESS_TRIM_H
#define GPUSCALE_BASE_PROCESS_TRIM_H

// Free heap pages go back to the kernel, and the code and constants of every loaded library are unmapped until they are
// touched again: thirty libraries have run their constructors by then, and most are never heard of again. Costs
// nothing but some page faults afterwards, so once, when all is up, is right. Other threads may run.
void process_trim(void);

#endif

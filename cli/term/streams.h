// SPDX-License-Identifier: Apache-2.0
// Guards the standard streams of a command: they exist, and their output is not silently truncated.
#ifndef GPUSCALE_CLI_TERM_STREAMS_H
#define GPUSCALE_CLI_TERM_STREAMS_H

// Call it first. Opens a standard descriptor that is closed; otherwise the first connection would get its number, and
// output would go to a server. From then on, an exit with status 0 becomes 1 if output could not be written
// completely (disk full, closed), with a message on standard error, or without one if the reader of a pipe has
// exited.
void streams_guard(void);

#endif

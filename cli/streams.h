// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error of a command: there, and not silently cut short.
#ifndef GPUSCALE_CLI_STREAMS_H
#define GPUSCALE_CLI_STREAMS_H

// To be called first. Takes the place of a standard descriptor that is closed, or else the first connection would get
// its number, and what is printed would go to a server. From then on an exit with 0 whose output could not all be
// written (disk full, closed) becomes one with 1, said on standard error; when the reader of a pipe just went away,
// without a word.
void streams_guard(void);

#endif

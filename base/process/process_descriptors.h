// SPDX-License-Identifier: Apache-2.0
// The limit on the file descriptors of this process.
#ifndef GPUSCALE_BASE_PROCESS_PROCESS_DESCRIPTORS_H
#define GPUSCALE_BASE_PROCESS_PROCESS_DESCRIPTORS_H

#define PROCESS_DESCRIPTORS 8192 // a server reserves an eighth for silent connections: HTTP_SERVER_SILENT_MAX

// Raises the soft limit to PROCESS_DESCRIPTORS, or to the hard limit when that is lower; never lowers it. Container
// runtimes start processes with a soft limit of 1024 for the sake of select(2), which this program does not use. Call
// this before creating servers, because they read the limit.
void process_raise_descriptors(void);

#endif

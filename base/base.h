// SPDX-License-Identifier: Apache-2.0
// What most .c files of the product need, so that each lists only the headers of its own subject: the C library,
// growing memory, errors, numbers and texts. Headers and the modules below do not include it.
#ifndef GPUSCALE_BASE_BASE_H
#define GPUSCALE_BASE_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"

#endif

// SPDX-License-Identifier: Apache-2.0
// The tests of a program at the same time, each in a process of its own: for those that wait more than they work.
#ifndef GPUSCALE_TEST_SUPPORT_APART_H
#define GPUSCALE_TEST_SUPPORT_APART_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST_APART_MAX 64

// In the place of cmocka_run_group_tests(tests, NULL, NULL), n <= TEST_APART_MAX: prints what they print, one after the
// other, as one TAP. Returns how many failed; one that crashes is one of them. Called while there is one thread.
int test_run_apart(const struct CMUnitTest *tests, size_t n);

#endif

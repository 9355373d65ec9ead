// SPDX-License-Identifier: Apache-2.0
#include "base/num.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/text.h"

#define SHOWN_BYTES 64
#define MS_PER_DAY  INT64_C(86400000)

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

// Writes s[0..len) to `out` in quotes, escaped and truncated by text_show. Returns `out`.
static const char *shown_text(char *out, const char *s, size_t len)
{
	size_t n = text_show(out + 1, SHOWN_BYTES - 2, s, len);
	out[0] = '"';
	memcpy(out + 1 + n, "\"", 2);
	return out;
}

// `what` names what is expected ("a duration"), `fix` is an example.
static int check_len(const char *s, size_t len, const char *what, const char *fix, struct err *e)
{
	char shown[SHOWN_BYTES];
	if (len == 0)
		return err_set(e, ERR_INPUT, "empty text: expected %s, for example %s", what, fix);
	if (len > NUM_INPUT_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "%s has %zu bytes, more than the ceiling of %d for %s",
		               shown_text(shown, s, len), len, NUM_INPUT_BYTES_MAX, what);
	return 0;
}

int num_parse_i64(const char *s, size_t len, int64_t min, int64_t max, int64_t *ret_value, struct err *e)
{
	char shown[SHOWN_BYTES];
	if (check_len(s, len, "a whole number", "8", e) < 0)
		return -1;
	bool negative = s[0] == '-', fits = true;
	size_t i = negative;
	int64_t v = 0;                                 // kept negative: INT64_MIN has no positive twin
	for (size_t at = i; i < len || i == at; i++) { // a lone '-' enters once, to be refused
		if (i == len || !is_digit(s[i]))
			return err_set(e, ERR_INPUT,
			               "%s is not a whole number: expected decimal digits only, from %lld to %lld",
			               shown_text(shown, s, len), (long long)min, (long long)max);
		if (fits && (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s[i] - '0', &v)))
			fits = false;
	}
	if (fits && !negative && __builtin_sub_overflow((int64_t)0, v, &v))
		fits = false;
	if (!fits || v < min || v > max)
		return err_set(e, ERR_INPUT, "%s is out of range: expected a whole number from %lld to %lld",
		               shown_text(shown, s, len), (long long)min, (long long)max);
	*ret_value = v;
	return 0;
}

// Length of the longest prefix of s[0..len) that is [+-](digits[.digits*]|.digits), 0 if there is none.
static size_t mantissa_len(const char *s, size_t len)
{
	size_t i = len && (s[0] == '+' || s[0] == '-'), digits = 0;
	for (; i < len && is_digit(s[i]); i++)
		digits++;
	if (i < len && s[i] == '.')
		for (i++; i < len && is_digit(s[i]); i++)
			digits++;
	return digits ? i : 0;
}

// True when s[0..len) is [eE][+-]digits, whole.
static bool is_exponent(const char *s, size_t len)
{
	if (len < 2 || (s[0] != 'e' && s[0] != 'E'))
		return false;
	size_t i = s[1] == '+' || s[1] == '-' ? 2 : 1;
	if (i == len)
		return false;
	for (; i < len; i++)
		if (!is_digit(s[i]))
			return false;
	return true;
}

int num_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Reads a decimal of at most 15 digits without exponent, as most numbers are. Its digits as a whole number and the
// power of ten are exact doubles, so their quotient is the double nearest to the decimal (Clinger 1990).
static bool short_value(const char *s, size_t len, double *ret_value)
{
	static const double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
	                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	if (len > 17) // with sign and point
		return false;
	int64_t digits = 0;
	size_t n = 0, point = len;
	bool negative = s[0] == '-';
	for (size_t i = negative || s[0] == '+'; i < len; i++) {
		if (s[i] == '.') {
			point = i + 1;
		} else if (is_digit(s[i])) {
			digits = digits * 10 + (s[i] - '0');
			n++;
		} else {
			return false;
		}
	}
	if (n > 15)
		return false;
	double v = (double)digits / powers[len - point];
	*ret_value = negative ? -v : v;
	return true;
}

// s[0..len) is decimal with an optional exponent, checked by the caller. The "C" locale object costs nothing in glibc
// and musl: newlocale returns a constant for it.
static double decimal_value(const char *s, size_t len, const char *exponent)
{
	char text[NUM_INPUT_BYTES_MAX + 8];
	double v;
	if (exponent[0] == '\0' && short_value(s, len, &v))
		return v;
	assert(len + strlen(exponent) < sizeof text);
	memcpy(text, s, len);
	memcpy(text + len, exponent, strlen(exponent) + 1);
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	assert(c);
	v = strtod_l(text, NULL, c);
	freelocale(c);
	return v;
}

static int out_of_range(const char *s, size_t len, struct err *e)
{
	char shown[SHOWN_BYTES];
	return err_set(e, ERR_INPUT, "%s is out of range: expected a number between -1.8e308 and 1.8e308",
	               shown_text(shown, s, len));
}

static int parse_decimal(const char *s, size_t len, const char *what, double *ret_value, struct err *e)
{
	char shown[SHOWN_BYTES];
	if (check_len(s, len, what, "0.7", e) < 0)
		return -1;
	size_t m = mantissa_len(s, len);
	if (m == 0 || (m < len && !is_exponent(s + m, len - m)))
		return err_set(e, ERR_INPUT, "%s is not a number: expected %s, for example 0.7 or -1e3",
		               shown_text(shown, s, len), what);
	double v = decimal_value(s, len, "");
	if (!isfinite(v))
		return out_of_range(s, len, e);
	*ret_value = v;
	return 0;
}

int num_parse_f64(const char *s, size_t len, double *ret_value, struct err *e)
{
	return parse_decimal(s, len, "a finite decimal number", ret_value, e);
}

int num_parse_sample(const char *s, size_t len, double *ret_value, struct err *e)
{
	static const struct {
		const char *text;
		double value;
	} specials[] = {{"NaN", NAN}, {"+Inf", INFINITY}, {"-Inf", -INFINITY}, {"Inf", INFINITY}};
	bool is_plain = len > 0 && is_digit(s[0]);
	for (size_t i = 0; !is_plain && i < sizeof specials / sizeof specials[0]; i++)
		if (strlen(specials[i].text) == len && memcmp(specials[i].text, s, len) == 0) {
			*ret_value = specials[i].value;
			return 0;
		}
	return parse_decimal(s, len, "a decimal number, NaN, +Inf or -Inf", ret_value, e);
}

int num_parse_quantity(const char *s, size_t len, double *ret_value, struct err *e)
{
	static const struct {
		const char *suffix;
		const char *exponent; // decimal power: through the text, so that 700m is exactly the double 0.7
		int power_of_two;
	} suffixes[] = {
	        {"", "", 0},    {"n", "e-9", 0}, {"u", "e-6", 0}, {"m", "e-3", 0}, {"k", "e3", 0}, {"M", "e6", 0},
	        {"G", "e9", 0}, {"T", "e12", 0}, {"P", "e15", 0}, {"E", "e18", 0}, {"Ki", "", 10}, {"Mi", "", 20},
	        {"Gi", "", 30}, {"Ti", "", 40},  {"Pi", "", 50},  {"Ei", "", 60},
	};
	char shown[SHOWN_BYTES];
	if (check_len(s, len, "a quantity", "\"0.7\", \"700m\" or \"16Gi\"", e) < 0)
		return -1;
	size_t m = mantissa_len(s, len);
	if (m == 0)
		return err_set(e, ERR_INPUT,
		               "%s is not a quantity: expected a decimal number with an optional suffix, for example "
		               "\"0.7\", \"700m\" or \"16Gi\"",
		               shown_text(shown, s, len));
	double v = NAN;
	bool known = false;
	if (is_exponent(s + m, len - m)) {
		v = decimal_value(s, len, "");
		known = true;
	}
	for (size_t i = 0; !known && i < sizeof suffixes / sizeof suffixes[0]; i++)
		if (strlen(suffixes[i].suffix) == len - m && memcmp(suffixes[i].suffix, s + m, len - m) == 0) {
			v = ldexp(decimal_value(s, m, suffixes[i].exponent), suffixes[i].power_of_two);
			known = true;
		}
	if (!known)
		return err_set(
		        e, ERR_INPUT,
		        "%s is not a quantity: expected the suffix n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, "
		        "Ei, an exponent such as e3, or nothing%s",
		        shown_text(shown, s, len),
		        len - m == 1 && s[m] == 'K' ? "; 1000 is written k, 1024 is written Ki" : "");
	if (!isfinite(v))
		return out_of_range(s, len, e);
	*ret_value = v;
	return 0;
}

static size_t print_digits(char *out, int precision, double value)
{
	// "%g" would write the 17 digits of such a number in plain.
	bool is_long = precision == 17 && fabs(value) >= 1e16 && fabs(value) < 1e17;
	return (size_t)(is_long ? snprintf(out, NUM_TEXT_BYTES, "%.16e", value)
	                        : snprintf(out, NUM_TEXT_BYTES, "%.*g", precision, value));
}

size_t num_format_f64(char *out, double value)
{
	double size = fabs(value);
	if (isnan(value))
		return (size_t)snprintf(out, NUM_TEXT_BYTES, "NaN");
	if (isinf(value))
		return (size_t)snprintf(out, NUM_TEXT_BYTES, value > 0 ? "+Inf" : "-Inf");
	if (size < 1e15 && value == trunc(value)) // counters and replicas: most of what is ever written
		return (size_t)snprintf(out, NUM_TEXT_BYTES, "%s%lld", signbit(value) ? "-" : "", (long long)size);
	// Any text of up to 15 digits survives a double, so shorter precisions need no trying, except where a
	// subnormal has fewer digits than that. "%g" writes plain digits for exponents below the precision.
	int precision = size < DBL_MIN ? 1 : size >= 1e15 && size < 1e16 ? 16 : 15;
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(c);
	size_t n = print_digits(out, precision, value);
	while (precision < 17 && decimal_value(out, n, "") != value)
		n = print_digits(out, ++precision, value);
	uselocale(before);
	freelocale(c);
	return n;
}

// ---- durations and RFC 3339 times ----

static const struct unit {
	const char *name;
	int64_t ms;
	bool only_whole; // num_format_duration_ms uses it only when nothing remains
} units[] = {
        {"y", 365 * MS_PER_DAY, true}, {"w", 7 * MS_PER_DAY, true}, {"d", MS_PER_DAY, false}, {"h", 3600000, false},
        {"m", 60000, false},           {"s", 1000, false},          {"ms", 1, false},
};
#define N_UNITS (sizeof units / sizeof units[0])

static size_t unit_of(const char *s, size_t len)
{
	size_t u = 0;
	while (u < N_UNITS && !(strlen(units[u].name) == len && memcmp(units[u].name, s, len) == 0))
		u++;
	return u;
}

// Says how the writer of s would have to write it: "1.5h" -> 1h30m, "90" -> 90s. Only called once s was refused.
static int refuse_duration(const char *s, size_t len, const char *why, struct err *e)
{
	char shown[SHOWN_BYTES], fix[NUM_TEXT_BYTES];
	shown_text(shown, s, len);
	size_t digits = 0;
	while (digits < len && (is_digit(s[digits]) || s[digits] == '.'))
		digits++;
	double number;
	size_t u = digits == len ? unit_of("s", 1) : unit_of(s + digits, len - digits);
	if (u < N_UNITS && num_parse_f64(s, digits, &number, NULL) == 0) {
		double exact = number * (double)units[u].ms, ms = round(exact);
		if (ms >= 1 && ms <= (double)NUM_DURATION_MS_MAX / 2 && fabs(ms - exact) <= 1e-9 * exact) {
			if (digits == len && !memchr(s, '.', len) &&
			    len < 6) // seconds without the s: leave them as they were written
				snprintf(fix, sizeof fix, "%.*ss", (int)len, s);
			else
				num_format_duration_ms(fix, (int64_t)ms);
			return err_set(e, ERR_INPUT, "%s is not a duration: %s; write \"%s\"", shown, why, fix);
		}
	}
	return err_set(
	        e, ERR_INPUT,
	        "%s is not a duration: %s; expected whole numbers with the units y w d h m s ms, largest first, for "
	        "example \"1h30m\" or \"500ms\"",
	        shown, why);
}

int num_parse_duration_ms(const char *s, size_t len, int64_t *ret_ms, struct err *e)
{
	char shown[SHOWN_BYTES];
	if (check_len(s, len, "a duration", "\"90s\" or \"1h30m\"", e) < 0)
		return -1;
	if (len == 1 && s[0] == '0') {
		*ret_ms = 0;
		return 0;
	}
	if (s[0] == '-')
		return refuse_duration(s, len, "it is negative", e);
	int64_t total = 0;
	bool fits = true;
	size_t i = 0, next_unit = 0;
	while (i < len) {
		size_t number_at = i;
		int64_t number = 0;
		for (; i < len && is_digit(s[i]); i++)
			if (__builtin_mul_overflow(number, 10, &number) ||
			    __builtin_add_overflow(number, s[i] - '0', &number))
				fits = false;
		if (i == number_at)
			return refuse_duration(s, len, "a number is missing", e);
		if (i < len && s[i] == '.')
			return refuse_duration(s, len, "fractions are not allowed", e);
		size_t unit_at = i;
		while (i < len && !is_digit(s[i]) && s[i] != '.')
			i++;
		if (i == unit_at)
			return refuse_duration(s, len, "the unit is missing", e);
		size_t u = unit_of(s + unit_at, i - unit_at);
		if (u == N_UNITS)
			return refuse_duration(s, len, "the unit is unknown", e);
		if (u < next_unit)
			return refuse_duration(s, len, "a unit comes twice or after a smaller one", e);
		next_unit = u + 1;
		if (__builtin_mul_overflow(number, units[u].ms, &number) ||
		    __builtin_add_overflow(total, number, &total))
			fits = false;
	}
	if (!fits || total > NUM_DURATION_MS_MAX)
		return err_set(e, ERR_INPUT, "%s is too long: expected a duration of at most 292y",
		               shown_text(shown, s, len));
	*ret_ms = total;
	return 0;
}

int num_parse_flag_duration_ms(const char *s, size_t len, int64_t *ret_ms, struct err *e)
{
	size_t digits = 0;
	double number;
	while (digits < len && (is_digit(s[digits]) || s[digits] == '.'))
		digits++;
	size_t u = unit_of(s + digits, len - digits);
	if (u == N_UNITS || !memchr(s, '.', digits) || num_parse_f64(s, digits, &number, NULL) < 0 ||
	    number * (double)units[u].ms > (double)NUM_DURATION_MS_MAX / 2)
		return num_parse_duration_ms(s, len, ret_ms, e);
	*ret_ms = llround(number * (double)units[u].ms);
	return 0;
}

size_t num_format_duration_ms(char *out, int64_t ms)
{
	if (ms == 0)
		return (size_t)snprintf(out, NUM_TEXT_BYTES, "0s");
	size_t n = 0;
	uint64_t left = (uint64_t)ms;
	if (ms < 0) {
		out[n++] = '-';
		left = 0 - left;
	}
	for (size_t u = 0; u < N_UNITS; u++) {
		uint64_t unit = (uint64_t)units[u].ms;
		assert(unit > 0);
		if (left < unit || (units[u].only_whole && left % unit != 0))
			continue;
		n += (size_t)snprintf(out + n, NUM_TEXT_BYTES - n, "%llu%s", (unsigned long long)(left / unit),
		                      units[u].name);
		left %= unit;
	}
	return n;
}

size_t num_format_about_ms(char *out, int64_t ms)
{
	int64_t rest = ms % 1000;
	return num_format_duration_ms(out, ms < 1000 ? ms : ms - rest + (rest >= 500 ? 1000 : 0));
}

int64_t num_days_of_date(int64_t year, int month, int day)
{
	struct tm tm = {.tm_year = (int)(year - 1900), .tm_mon = month - 1, .tm_mday = day};
	return timegm(&tm) / 86400;
}

// The year is counted from March, so that the leap day is its last day; 400-year eras make it exact for negative years
// too. Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
static void date_of_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
	days += 719468;
	int64_t era = (days >= 0 ? days : days - 146096) / 146097;
	int64_t day_of_era = days - era * 146097;
	int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t m = (5 * day_of_year + 2) / 153;
	*ret_day = (int)(day_of_year - (153 * m + 2) / 5 + 1);
	*ret_month = (int)(m < 10 ? m + 3 : m - 9);
	*ret_year = year_of_era + era * 400 + (*ret_month <= 2);
}

static int64_t days_in_month(int year, int month)
{
	return num_days_of_date(year, month + 1, 1) - num_days_of_date(year, month, 1);
}

// Reads the text by a picture: 'd' is a digit of the number at hand, 'T' is T or t, anything else is itself.
// Numbers are stored one after the other. -1 when the text is shorter or different.
static int read_picture(const char *s, size_t len, const char *picture, int *ret_numbers)
{
	size_t i = 0;
	int *number = ret_numbers - 1;
	bool in_number = false;
	for (; picture[i]; i++) {
		if (i == len)
			return -1;
		if (picture[i] == 'd') {
			if (!is_digit(s[i]))
				return -1;
			if (!in_number)
				*++number = 0;
			*number = *number * 10 + (s[i] - '0');
			in_number = true;
			continue;
		}
		in_number = false;
		if (s[i] != picture[i] && !(picture[i] == 'T' && s[i] == 't'))
			return -1;
	}
	return 0;
}

static int refuse_time(const char *s, size_t len, const char *why, struct err *e)
{
	char shown[SHOWN_BYTES];
	return err_set(e, ERR_INPUT, "%s is not an RFC 3339 time: %s; expected for example \"2026-01-05T09:00:00Z\"",
	               shown_text(shown, s, len), why);
}

int num_parse_rfc3339_ms(const char *s, size_t len, int64_t *ret_ms, struct err *e)
{
	enum { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, N_FIELDS };
	static const char picture[] = "dddd-dd-ddTdd:dd:dd";
	int f[N_FIELDS];
	if (check_len(s, len, "an RFC 3339 time", "\"2026-01-05T09:00:00Z\"", e) < 0)
		return -1;
	if (read_picture(s, len, picture, f) < 0)
		return refuse_time(s, len, "it is not written as date, T, time, Z or offset", e);
	if (f[YEAR] < 1970)
		return refuse_time(s, len, "the year is before 1970", e);
	if (f[MONTH] < 1 || f[MONTH] > 12)
		return refuse_time(s, len, "the month is not 01..12", e);
	if (f[DAY] < 1 || f[DAY] > days_in_month(f[YEAR], f[MONTH]))
		return refuse_time(s, len, "that month has no such day", e);
	if (f[HOUR] > 23 || f[MINUTE] > 59)
		return refuse_time(s, len, "the time of day is not 00:00..23:59", e);
	if (f[SECOND] == 60)
		return refuse_time(s, len, "leap seconds (:60) are not supported, write :59", e);
	if (f[SECOND] > 59)
		return refuse_time(s, len, "the seconds are not 00..59", e);
	size_t i = sizeof picture - 1;
	int64_t fraction_ms = 0;
	if (i < len && s[i] == '.') {
		size_t first = ++i;
		int64_t weight = 100;
		for (; i < len && is_digit(s[i]); i++, weight /= 10)
			fraction_ms += weight * (s[i] - '0');
		if (i == first)
			return refuse_time(s, len, "digits are missing after the point", e);
	}
	int64_t offset_minutes = 0;
	if (i == len)
		return refuse_time(s, len, "the zone is missing, end it with Z or an offset such as +01:00", e);
	if (s[i] == 'Z' || s[i] == 'z') {
		i++;
	} else {
		int o[2];
		if ((s[i] != '+' && s[i] != '-') || read_picture(s + i + 1, len - i - 1, "dd:dd", o) < 0)
			return refuse_time(s, len, "the zone is neither Z nor an offset such as +01:00", e);
		if (o[0] > 23 || o[1] > 59)
			return refuse_time(s, len, "the offset is not 00:00..23:59", e);
		offset_minutes = (s[i] == '-' ? -1 : 1) * (o[0] * 60 + o[1]);
		i += sizeof "+dd:dd" - 1;
	}
	if (i != len)
		return refuse_time(s, len, "there is text after the zone", e);
	int64_t minutes =
	        (num_days_of_date(f[YEAR], f[MONTH], f[DAY]) * 24 + f[HOUR]) * 60 + f[MINUTE] - offset_minutes;
	int64_t ms = (minutes * 60 + f[SECOND]) * 1000 + fraction_ms;
	if (ms < 0 || ms >= num_days_of_date(10000, 1, 1) * MS_PER_DAY)
		return refuse_time(s, len, "in UTC it is outside the years 1970..9999", e);
	*ret_ms = ms;
	return 0;
}

size_t num_format_rfc3339_ms(char *out, int64_t epoch_ms)
{
	int64_t days = epoch_ms / MS_PER_DAY, of_day = epoch_ms % MS_PER_DAY, year;
	if (of_day < 0) {
		of_day += MS_PER_DAY;
		days--;
	}
	int month, day, ms = (int)(of_day % 1000), second = (int)(of_day / 1000);
	date_of_days(days, &year, &month, &day);
	int n = snprintf(out, NUM_TEXT_BYTES, "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)year, month, day,
	                 second / 3600, second / 60 % 60, second % 60);
	n += snprintf(out + n, NUM_TEXT_BYTES - (size_t)n, ms ? ".%03dZ" : "Z", ms);
	return (size_t)n;
}

/* Numbers as text. printf's %g takes about 200 ns and goes by the locale; a row of the log has eight such
 * numbers and may cost a microsecond in all. Six digits of a double need no more than a power of ten, a
 * rounding and divisions by ten. */
#include "digits.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { POWERS = sizeof powers / sizeof *powers, SIGNIFICANT = 6 };

/* At least `least` digits, with zeros in front. */
static char *digits(char *out, uint64_t value, int least) {
    char reversed[20];
    int count = 0;
    for (; value > 0; value /= 10) reversed[count++] = (char)('0' + value % 10);
    while (count < least) reversed[count++] = '0';
    while (count > 0) *out++ = reversed[--count];
    *out = 0;
    return out;
}

char *digits_whole(char *out, long long value) {
    if (value < 0) *out++ = '-';
    return digits(out, value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

/* A number of `decimals` decimals that is `scaled` / 10^decimals. */
static char *pointed(char *out, uint64_t scaled, int decimals) {
    const uint64_t unit = (uint64_t)powers[decimals];
    out = digits(out, scaled / unit, 1);
    if (decimals == 0) return out;
    *out++ = '.';
    return digits(out, scaled % unit, decimals);
}

char *digits_thousands(char *out, double value) {
    char plain[DIGITS_BYTES];
    const char *end = digits_whole(plain, llrint(fmin(fabs(value), 1e15)));
    for (const char *c = plain; c < end; c++) {
        if (c > plain && (end - c) % 3 == 0) *out++ = ',';
        *out++ = *c;
    }
    *out = 0;
    return out;
}

char *digits_fixed(char *out, double value, int decimals) {
    if (!(fabs(value) < 1e9)) return digits_real(out, value);
    const uint64_t scaled = (uint64_t)llrint(fabs(value) * powers[decimals]);
    if (value < 0 && scaled > 0) *out++ = '-';
    return pointed(out, scaled, decimals);
}

/* value * 10^exponent */
static double scaled_by(double value, int exponent) {
    for (; exponent >= POWERS; exponent -= POWERS - 1) value *= powers[POWERS - 1];
    for (; exponent <= -POWERS; exponent += POWERS - 1) value /= powers[POWERS - 1];
    return exponent >= 0 ? value * powers[exponent] : value / powers[-exponent];
}

char *digits_real(char *out, double value) {
    if (value < 0) *out++ = '-';
    value = fabs(value);
    if (isnan(value)) return stpcpy(out, "nan");
    if (isinf(value)) return stpcpy(out, "inf");
    if (value == 0) return stpcpy(out, "0");
    int exponent = (int)floor(log10(value)); /* of the first digit; can be one off beside a power of ten */
    double mantissa = rint(scaled_by(value, SIGNIFICANT - 1 - exponent));
    if (mantissa >= 1e6) mantissa = rint(scaled_by(value, SIGNIFICANT - 1 - ++exponent));
    if (mantissa < 1e5) mantissa = rint(scaled_by(value, SIGNIFICANT - 1 - --exponent));
    if (exponent >= -4 && exponent < SIGNIFICANT)
        return pointed(out, (uint64_t)mantissa, SIGNIFICANT - 1 - exponent);
    out = pointed(out, (uint64_t)mantissa, SIGNIFICANT - 1);
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    return digits(out, (uint64_t)(exponent < 0 ? -exponent : exponent), 2);
}

/* Numbers as text, fast and the same in every locale: steps.csv has eight of them in each row. */
#ifndef TRAINER_RECORD_DIGITS_H
#define TRAINER_RECORD_DIGITS_H

enum { DIGITS_BYTES = 32 }; /* most that one call writes, the closing 0 included */

/* Each writes at `out`, ends it with 0 and returns where that 0 stands. */
char *digits_whole(char *out, long long value);
/* With `decimals` (0 to 9) places after the point: 12.340000. Beyond 1e9 and for what is not finite as
 * digits_real. */
char *digits_fixed(char *out, double value, int decimals);
/* The magnitude as a whole number with commas, for readers: 1,234,567. At most 1e15. */
char *digits_thousands(char *out, double value);
/* With six significant digits: 2.30259, 0.000123457, 1.50000e-07, nan, inf. */
char *digits_real(char *out, double value);

#endif

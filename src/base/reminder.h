/* When a line that stays true is said again: at once, after 5 s, then after twice as long each time, up to a
 * minute. A reminder of zeros is due at once. */
#ifndef TRAINER_BASE_REMINDER_H
#define TRAINER_BASE_REMINDER_H

#include <math.h>
#include <stdbool.h>

#define REMINDER_FIRST_S 5.0
#define REMINDER_MOST_S 60.0

struct reminder {
    double due_s;   /* not before this moment */
    double pause_s; /* before the last one; 0: there was none */
};

/* What the line says has changed: it is due after the first pause, or earlier. */
static inline void reminder_renew(struct reminder *reminder, double now_s) {
    const double due_s = now_s + REMINDER_FIRST_S;
    if (reminder->due_s > due_s) reminder->due_s = due_s;
    reminder->pause_s = 0.0;
}

/* Whether it is to be said now; who asks does so then. */
static inline bool reminder_is_due(struct reminder *reminder, double now_s) {
    if (now_s < reminder->due_s) return false;
    reminder->pause_s = fmax(fmin(2.0 * reminder->pause_s, REMINDER_MOST_S), REMINDER_FIRST_S);
    reminder->due_s = now_s + reminder->pause_s;
    return true;
}

#endif

/* The sections of the page of one run, and what they share. */
#ifndef TRAINER_REPORT_ONE_RUN_H
#define TRAINER_REPORT_ONE_RUN_H

#include "page.h"

/* glance.c: what is read first; faults and losses. learnt.c, time_spent.c, step_by_step.c, staleness.c. */
int write_glance(struct html *html, const struct report *report, struct error *error);
int write_losses(struct html *html, const struct report *report, struct error *error);
int write_learnt(struct html *html, const struct report *report, struct error *error);
int write_time_spent(struct html *html, const struct report *report, struct error *error);
int write_waits(struct html *html, const struct report *report, struct error *error);
bool has_waits(const struct report *report);
int write_step_by_step(struct html *html, const struct report *report, struct error *error);
int write_staleness(struct html *html, const struct report *report, struct error *error);

const struct facts *run_of(const struct report *report);
/* Above the lane of a worker. */
void write_name(struct html *html, const struct facts *facts, int worker);
/* After the lanes: that there are more workers than that. */
void say_more(struct html *html, int count);

#endif

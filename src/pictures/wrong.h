/* The pictures that a network was wrong about. */
#ifndef TRAINER_PICTURES_WRONG_H
#define TRAINER_PICTURES_WRONG_H

#include "example.h"

/* What a network said of examples. */
struct answers {
    const int *said;            /* [examples] class */
    const float *probabilities; /* [examples][classes] */
};

struct mistake {
    int number; /* of the example */
    float sure; /* probability of what was said */
};

/* *mistakes = all examples that were taken for another class (owned by the caller: memory_free), those of
 * which the network was surest first, equal ones in the order of the data set. */
int mistakes_find(struct mistake **mistakes, int *count, const struct examples *examples,
                  const struct answers *answers, int classes, struct error *error);

/* Those of which it was surest come first, at most `count`; each as it is stored, with its label and what was
 * said. `part` is a word for the title. Errors: ERROR_USAGE: no images. */
int wrong_sheet(struct sheet *sheet, const struct dataset *dataset, const struct examples *examples,
                const char *part, const struct answers *answers, int count, struct error *error);

#endif

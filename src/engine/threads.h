/* The crew of a run in one process: a thread for each of its devices, with a replica of the network. */
#ifndef TRAINER_ENGINE_THREADS_H
#define TRAINER_ENGINE_THREADS_H

#include "crew.h"

extern const struct crew threads_crew;

#endif

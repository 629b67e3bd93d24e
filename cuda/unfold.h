/* Private to cuda/: a convolution as one matrix product (unfold.c), for convolution.c, beside cuDNN's ways.
 */
#ifndef TRAINER_CUDA_UNFOLD_H
#define TRAINER_CUDA_UNFOLD_H

#include "operands.h"
#include "product.h"

enum { UNFOLD_PRODUCTS = 2 };

/* What its candidates share; constant once it has been measured. */
struct unfolding {
    struct operand_windows windows;
    bool gradient; /* of the kernel; else forward */
    bool direct;   /* x is its unfolded self */
    enum type computed;
    int positions, window, out; /* rows of the unfolded x, and its columns; output channels */
    int pitch;                  /* numbers from row to row */
    int splits;                 /* of the positions, in the first of two products; 1: there is one product */
    size_t unfolded_bytes, parts_bytes;
    struct product product[UNFOLD_PRODUCTS];
    int count; /* candidates: algorithms of all products */
};

/* *unfolding NULL: it is none for a matrix product, or its memory would be more than `budget` bytes. */
int unfold_open(const struct problem *problem, size_t budget, struct unfolding **unfolding,
                struct error *error);
void unfold_close(struct unfolding *unfolding); /* NULL is fine */
/* As a kernel's slots are, of the candidate of that number. */
bool unfold_wants(const struct problem *problem, const struct unfolding *unfolding, int number, int i,
                  struct form *form);
int unfold_bind(const struct problem *problem, const struct unfolding *unfolding, int number, void **instance,
                struct error *error);
void unfold_unbind(void *instance); /* NULL is fine */
/* measured: what keeps the candidate from running is remembered. KERNEL_DECLINED: it cannot. */
int unfold_run(const struct call *call, const struct unfolding *unfolding, int number, void *instance,
               bool measured, struct error *error);
/* "unfold + cublaslt:bf16, bias and relu fused, algorithm 2 of 8, workspace 11.8 MB", of which most is what
 * is unfolded; "cublaslt:128 parts, bf16, ..." where the sum is made of so many. */
void unfold_describe(const struct unfolding *unfolding, int number, char *out, size_t bytes);

#endif

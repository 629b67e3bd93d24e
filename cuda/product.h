/* Private to cuda/: a matrix product as cuBLASLt is told of it (product.c), and which of its algorithms can
 * compute it; for matmul.c, and unfold.c, which makes a product of a convolution. */
#ifndef TRAINER_CUDA_PRODUCT_H
#define TRAINER_CUDA_PRODUCT_H

#include "gpu.h"

enum { PRODUCT_ALGORITHMS = 8, PRODUCT_WORKSPACE = 32 << 20 };

/* Row after row, float32 or bf16. */
struct matrix {
    int rows, columns;
    int pitch;    /* numbers from row to row */
    int64_t next; /* numbers to the next one's, where there are several */
    enum type type;
};

/* y = a b, or those of them turned; of several, each y = its a b. */
struct product_wish {
    struct matrix a, b, y;
    bool turned[2]; /* a, b */
    int count;      /* of products at once; 0: one */
};

/* Constant once it has been measured; any thread may use it. */
struct product {
    const struct device *device;
    cublasLtMatrixLayout_t a, b, y;
    enum type computed, result; /* of a and b, of y */
    bool turned[2];
    cublasLtEpilogue_t epilogue; /* DEFAULT: bias and activation, where wanted, by a kernel of ours */
    int count;                   /* algorithms */
    cublasLtMatmulHeuristicResult_t found[PRODUCT_ALGORITHMS];
    cublasStatus_t *status; /* [PRODUCT_ALGORITHMS] that each came to while they were measured; owned */
};

/* Where a run has its operands. */
struct product_operands {
    const void *a, *b, *bias;
    void *y, *workspace;
};

/* Fills a zeroed product with all but algorithms. Close it after a failure, too. */
int product_open(struct product *product, const struct device *device, const struct product_wish *wish,
                 struct error *error);
void product_close(struct product *product);
/* The epilogue of an operation with a bias; DEFAULT: cuBLASLt has none with that activation. */
cublasLtEpilogue_t product_epilogue(enum activation activation);
/* Lists what cuBLASLt thinks fast with that epilogue, best first; it may stay empty. */
int product_find(struct product *product, cublasLtEpilogue_t epilogue, struct error *error);
bool product_has_bias(const struct product *product);
/* Whether cuBLASLt adds the bias in bf16. */
bool product_narrows_bias(const struct product *product);
/* For one arena: a descriptor that its runs change. *made is the caller's to destroy, also after an error. */
int product_describe(const struct product *product, cublasLtMatmulDesc_t *made, struct error *error);
/* Queues the product by that algorithm. *status: the library's. KERNEL_DECLINED: it cannot after all. */
int product_run(const struct product *product, int algorithm, cublasLtMatmulDesc_t descriptor,
                const struct product_operands *operands, cublasStatus_t *status, struct error *error);
/* "fp32, bias and relu fused, algorithm 2 of 8, 1 failed (code 15), workspace 4.0 MB": the code is that of
 * the last one. */
void product_say(const struct product *product, int algorithm, size_t workspace, char *out, size_t bytes);

#endif

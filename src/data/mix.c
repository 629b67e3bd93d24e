/* mixup: Zhang et al., "mixup: Beyond Empirical Risk Minimization", 2018. cutmix: Yun et al., "CutMix:
 * Regularization Strategy to Train Strong Classifiers with Localizable Features", 2019. */
#include "mix.h"

#include <stdbool.h>

/* Beta(alpha, alpha) from two uniform numbers, as Student's t with 2 alpha degrees of freedom, which Bailey's
 * polar method draws without rejection. Devroye, "Random variate generation in one line of code", 1996. */
static double draw_beta(double alpha, uint32_t radius, uint32_t angle) {
    const double square = pow((double)rng_unit_open(radius), -1.0 / alpha) - 1.0;
    const double cosine = cos(2.0 * acos(-1.0) * (double)rng_unit(angle));
    return 0.5 + 0.5 * cosine / sqrt(1.0 / square + cosine * cosine);
}

/* A box that has 1 - share of the crop, its centre anywhere in it; what is outside of the crop is cut off. */
static void draw_box(struct augment_mix *mix, const struct augment *a, double share, const uint32_t *centre) {
    const double side = sqrt(1.0 - share);
    const int rows = (int)(a->rows * side + 0.5), columns = (int)(a->columns * side + 0.5);
    const int top = augment_below(centre[0], a->rows) - rows / 2,
              left = augment_below(centre[1], a->columns) - columns / 2;
    mix->top = augment_clip(top, a->rows);
    mix->bottom = augment_clip(top + rows, a->rows);
    mix->left = augment_clip(left, a->columns);
    mix->right = augment_clip(left + columns, a->columns);
    const double area = (double)(mix->bottom - mix->top) * (mix->right - mix->left);
    mix->share = (float)(1.0 - area / ((double)a->rows * a->columns));
}

void mix_draw(struct augment_mix *mix, const struct augment *augment, uint64_t key) {
    const struct rng_block first = rng_philox(key, 0, 2), second = rng_philox(key, 0, 3);
    const bool both = augment->mixup > 0.0f && augment->cutmix > 0.0f;
    const bool boxed = both ? second.word[0] >> 31 : augment->cutmix > 0.0f;
    const double alpha = (double)(boxed ? augment->cutmix : augment->mixup);
    *mix = (struct augment_mix){.share = 1.0f};
    if (!augment_mixes(augment)) return;
    const double share = draw_beta(alpha, first.word[0], first.word[1]);
    mix->share = (float)share;
    mix->boxed = boxed;
    if (boxed) draw_box(mix, augment, share, &first.word[2]);
}

/* Weights brought into the forms that cuBLASLt and cuDNN want: the backend's slot `reform`. */
#include "gpu.h"
#include "operands.h"

int gpu_reform(const struct device *device, const struct reforming *list, int count, struct error *error) {
    struct operand_forms forms = {.count = count};
    struct queue *queue = gpu_queue(device, error);
    size_t until = 0;
    _Static_assert((int)OPERAND_FORMS >= (int)REFORMINGS, "a launch takes all operands");
    if (!queue) return error->code;
    for (int i = 0; i < count; i++) {
        const struct form *form = &list[i].form;
        until += (size_t)form->rows * (size_t)form->columns;
        forms.form[i].from = list[i].from;
        forms.form[i].to = list[i].to;
        forms.form[i].until = until;
        forms.form[i].rows = (unsigned)form->rows;
        forms.form[i].columns = (unsigned)form->columns;
        forms.form[i].turned = form->turned;
    }
    GPU_TRY(device, operand_reform(queue->stream, &forms, list[0].form.type), error);
    return OK;
}

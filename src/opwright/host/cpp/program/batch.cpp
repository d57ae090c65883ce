#include "program/batch.h"

#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <span>
#include <stdexcept>

#include "engine/activity.h"
#include "engine/device.h"
#include "engine/reason.h"
#include "program/npy.h"
#include "program/timed_run.h"

namespace opwright::host {
namespace {

using RowTensors = std::vector<at::Tensor>;

bool same_form(const RowTensors& some, const RowTensors& others) {
    return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                      [](const at::Tensor& one, const at::Tensor& other) {
                          return one.scalar_type() == other.scalar_type() && one.sizes() == other.sizes();
                      });
}

// The common size of dimension 0 of all inputs; nullopt if they differ.
std::optional<int64_t> leading_size(const RowTensors& inputs) {
    if (inputs.empty() || inputs[0].dim() == 0) return std::nullopt;
    const int64_t size = inputs[0].size(0);
    for (const at::Tensor& input : inputs)
        if (input.dim() == 0 || input.size(0) != size) return std::nullopt;
    return size;
}

// The values of an output, in memory that the model's next run does not overwrite: they are written while it computes
// the next request. An output may be part of the model's state.
at::Tensor own_values(const at::Tensor& output) {
    const bool is_shared =
        output.layout() == at::kStrided && (output.use_count() > 1 || output.storage().use_count() > 1);
    const at::Tensor values = numpy_values(output);
    return is_shared && values.is_alias_of(output) ? values.clone() : values;
}

class BatchRun {
  public:
    BatchRun(const Model& model, Batch batch, const std::function<void(RowAnswer)>& take)
        : model_(model), batch_(std::move(batch)), take_(take), answers_(batch_.rows.size()) {
        for (size_t row = 0; row < batch_.rows.size(); ++row)
            if (batch_.rows[row].error)
                put(row, {.error = batch_.rows[row].error});
            else
                readable_.push_back(row);
    }

    void compute() {
        hand_on();
        for (std::span<const size_t> left = readable_; !left.empty();) {
            const RowTensors& first = inputs_of(left[0]);
            size_t count = 1;
            while (count < left.size() && same_form(first, inputs_of(left[count]))) ++count;
            const std::span<const size_t> group = left.first(count);
            left = left.subspan(count);
            if (count == 1 || !ran_together(group))
                for (const size_t row : group) run_alone(row);
            hand_on();
        }
    }

  private:
    const RowTensors& inputs_of(size_t row) const { return batch_.rows[row].inputs; }

    void put(size_t row, RowAnswer answer) {
        answer.request = batch_.number;
        answer.row = row;
        answer.is_last = row + 1 == answers_.size();
        answers_[row] = std::move(answer);
    }

    // Passes on the answers that do not wait for an earlier one.
    void hand_on() {
        for (; next_ < answers_.size() && answers_[next_]; ++next_) {
            batch_.rows[next_].inputs.clear();
            take_(*std::exchange(answers_[next_], std::nullopt));
        }
    }

    void run_alone(size_t row) {
        const ActivityScope scope("computed", batch_.rows[row].name);
        RowAnswer answer;
        answer.error = error_of(Code::internal, "", [&] {
            const TimedRun run = run_timed(model_, inputs_of(row));
            answer.seconds = run.seconds;
            for (const at::Tensor& output : run.outputs) answer.outputs.push_back(own_values(output));
        });
        if (answer.error) require_device(*answer.error);
        put(row, std::move(answer));
        hand_on();
    }

    bool ran_together(std::span<const size_t> group) {
        const std::optional<int64_t> size = leading_size(inputs_of(group[0]));
        if (!size) return false;
        const ActivityScope scope("computed", "request " + std::to_string(batch_.number));
        std::vector<RowAnswer> found;
        const auto error = error_of(Code::internal, "", [&] { found = run_together(group, *size); });
        if (error) {
            require_device(*error);
            return false;  // each row has its own error, or none
        }
        for (size_t i = 0; i < group.size(); ++i) put(group[i], std::move(found[i]));
        return true;
    }

    // Throws `why` if the GPU is lost: no later row can have its own answer then.
    void require_device(const Error& why) const {
        if (is_lost(at::Device(model_.device()))) throw Error(why);
    }

    // Throws if the rows cannot be computed as one batch.
    std::vector<RowAnswer> run_together(std::span<const size_t> group, int64_t size) const {
        RowTensors joined;
        for (size_t input = 0; input < inputs_of(group[0]).size(); ++input) {
            RowTensors parts;
            for (const size_t row : group) parts.push_back(inputs_of(row)[input]);
            joined.push_back(at::cat(parts, 0));
        }
        const auto count = static_cast<int64_t>(group.size());
        const TimedRun run = run_timed(model_, joined);
        std::vector<RowAnswer> found(group.size(), RowAnswer{.seconds = run.seconds});
        for (const at::Tensor& output : run.outputs) {
            if (output.layout() != at::kStrided || output.dim() == 0 || output.size(0) != count * size)
                throw std::runtime_error("an output does not have one part per row");
            const at::Tensor values = own_values(output);
            for (int64_t i = 0; i < count; ++i)
                found[static_cast<size_t>(i)].outputs.push_back(values.narrow(0, i * size, size));
        }
        return found;
    }

    const Model& model_;
    Batch batch_;
    const std::function<void(RowAnswer)>& take_;
    std::vector<size_t> readable_;
    std::vector<std::optional<RowAnswer>> answers_;  // of the rows that wait for an earlier one
    size_t next_ = 0;                                // the first row without an answer
};

}  // namespace

void compute_batch(const Model& model, Batch batch, const std::function<void(RowAnswer)>& take) {
    const c10::AutoGradMode without_gradients(false);
    BatchRun(model, std::move(batch), take).compute();
}

}  // namespace opwright::host

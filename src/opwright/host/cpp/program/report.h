// What the program prints: text for people, JSON for programs.
#pragma once

#include <optional>

#include "opwright/host.h"
#include "program/options.h"
#include "program/requests.h"
#include "program/runs.h"
#include "program/streams.h"

namespace opwright::host {

class Report {
  public:
    // Throws Error with `output_unwritable` where --json names a file that cannot be written.
    explicit Report(const Options& options);

    // Where JSON goes; below 0 without it.
    int json_descriptor() const;

    // One request's answer: its outputs or its error. Throws what PyTorch throws, for an output that it cannot sort
    // say; nothing was printed then.
    void answer(const Request& request, const Answer& answer, const Model& model);

    // Times of all runs. `load_seconds`: of the bundle; `first_result_seconds`: since the program began.
    void figures(const Runs& runs, double load_seconds, double first_result_seconds);

    // The model is loaded, and a stream of requests can begin.
    void ready(const Model& model, double load_seconds);

    // `farthest`: how far an output lay from its golden.
    void verified(const Model& model, double farthest);

    // Throws Error with `output_unwritable` if something could not be written: because the disk is full, for example.
    void require_written() const;

    // An error that ends the program.
    void failed(const Error& error);

  private:
    const Options& options_;
    std::optional<DescriptorStream> json_;  // empty without --json
    std::optional<DescriptorStream> text_;  // empty if JSON replaces it
};

}  // namespace opwright::host

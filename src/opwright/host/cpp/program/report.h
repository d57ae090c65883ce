// Prints the program's results: text for people, JSON for programs.
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
    // Throws Error with `output_unwritable` if --json names a file that cannot be written.
    explicit Report(const Options& options);

    // The descriptor that JSON is written to; negative without JSON.
    int json_descriptor() const;

    // Prints one request's answer, its outputs or its error. Throws PyTorch's exception for an output that it cannot,
    // for example, sort; nothing was printed then.
    void answer(const Request& request, const Answer& answer, const Model& model);

    // Times of all runs. `load_seconds`: of the bundle; `first_result_seconds`: since the program started.
    void figures(const Runs& runs, double load_seconds, double first_result_seconds);

    // The model is loaded, and a stream of requests can start.
    void ready(const Model& model, double load_seconds);

    // `farthest`: the largest relative deviation from a golden.
    void verified(const Model& model, double farthest);

    // Throws Error with `output_unwritable` if something could not be written, for example because the disk is full.
    void require_written() const;

    // Reports an error that ends the program.
    void failed(const Error& error);

  private:
    const Options& options_;
    std::optional<DescriptorStream> json_;  // nullopt without --json
    std::optional<DescriptorStream> text_;  // nullopt if JSON replaces it
};

}  // namespace opwright::host

// What the program says of its answers: text for people, JSON for programs.
#pragma once

#include <fstream>
#include <ostream>

#include "opwright/host.h"
#include "program/options.h"
#include "program/requests.h"
#include "program/runs.h"

namespace opwright::host {

class Report {
  public:
    // Throws Error with `output_unwritable` where --json names a file that cannot be written.
    explicit Report(const Options& options);

    // One request's answer: its outputs or its error.
    void answer(const Request& request, const Answer& answer, const Model& model);

    // Times of all runs. `load_seconds`: of the bundle; `first_result_seconds`: since the program began.
    void figures(const Runs& runs, double load_seconds, double first_result_seconds);

    // `farthest`: how far an output lay from its golden.
    void verified(const Model& model, double farthest);

    // Throws Error with `output_unwritable` where what was said could not be written: to a full disk, say.
    void require_written() const;

    // An error that ends the program.
    void failed(const Error& error);

  private:
    const Options& options_;
    std::ofstream file_;
    std::ostream* json_ = nullptr;  // null where none is wanted
    std::ostream* text_ = nullptr;  // null where JSON has taken their place
};

}  // namespace opwright::host

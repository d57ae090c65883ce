#include "program/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>

#include "opwright/host/error.h"

namespace opwright::host {

namespace {

// The requests of a stream replace all other options.
void require_alone(const CLI::App& app) {
    for (const std::string name :
         {"--input", "--requests", "--verify", "--output", "--repeat", "--top-k", "--json", "--runners", "--warm-up"})
        if (app.count(name) > 0)
            throw Error(Code::usage, "--stream excludes " + name +
                                         ": its requests come from standard input, one at a time, and its answers go "
                                         "to standard output; `opwright-host --help` shows how");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
    Options options;
    CLI::App app("Runs a bundle that `opwright ship` wrote: a model and its operators, without Python.",
                 "opwright-host");
    app.footer(
        "Examples:\n"
        "  opwright-host my_bundle --input photo.jpg --top-k 5\n"
        "  opwright-host my_bundle --input image=a.npy --input warp=b.npy --output result.npz\n"
        "  opwright-host my_bundle --input all.npz --repeat 100 --threads 2 --json -\n"
        "  opwright-host my_bundle --requests list.jsonl --runners 4\n"
        "  opwright-host my_bundle --stream\n"
        "  opwright-host my_bundle --verify\n\n"
        "A line of a list: {\"inputs\": {\"image\": \"a.jpg\"}, \"output\": \"a.npz\"}, paths from the list's folder "
        "on.\n"
        "A line of a stream: the same without an output; {\"bytes\": N} replaces a file whose N bytes follow the line; "
        "or {\"batch\": [...]} with such rows. An answer is a line of JSON, followed by the bytes of its outputs.\n"
        "Exit codes: 0 success, 2 wrong usage, 20 to 44 as docs/reference/exit_codes.md lists them, 1 anything else.");
    app.add_option("bundle", options.bundle, "The bundle's folder")->required();
    app.add_option("-i,--input", options.inputs, "FILE or NAME=FILE: .npy, .npz with one array per input, .jpg or .png")
        ->allow_extra_args(false);
    app.add_option("--requests", options.requests, "A file with one JSON request per line; - is standard input");
    app.add_option("-o,--output", options.output,
                   "Write the outputs to this .npz file, or a single output to this .npy file");
    app.add_option("--top-k", options.top_k, "Print the indices of the K largest values of each row")
        ->check(CLI::Range(1, 1000000));
    CLI::Option* json = app.add_option("--json", options.json,
                                       "Write JSON to FILE; without FILE or with -, to standard output. One line per "
                                       "request, and one with statistics")
                            ->type_name("FILE")
                            ->expected(0, 1);
    app.add_flag("--verify", options.verify, "Check the bundle and run its goldens, and nothing else");
    app.add_option("--repeat", options.repeat, "Run each request N times, and time the runs")
        ->check(CLI::Range(1, 100000000));
    app.add_option("--warm-up", options.warm_up, "Run the first request N times before the clock starts (2)")
        ->check(CLI::Range(0, 1000000));
    app.add_option("--threads", options.threads, "The number of threads for one run")->check(CLI::Range(1, 4096));
    app.add_option("--runners", options.runners, "The number of requests to run concurrently (1)")
        ->check(CLI::Range(1, 4096));
    app.add_flag("--stream", options.stream,
                 "Answer requests from standard input on standard output as they arrive, until the input ends");
    app.add_option("--memory-limit", options.memory_limit,
                   "The limit of the process's memory in bytes; exceeding it is an error")
        ->type_name("BYTES")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 62));
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp& help) {
        app.exit(help);
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        std::string why = error.what();
        std::replace(why.begin(), why.end(), '\n', ' ');
        throw Error(Code::usage, why + "; `opwright-host --help` shows the usage");
    }
    if (json->count() > 0 && options.json.empty()) options.json = "-";
    if (options.stream) {
        require_alone(app);
        options.json = "-";
        return options;
    }
    if (options.verify ? !options.inputs.empty() || !options.requests.empty()
                       : options.inputs.empty() == options.requests.empty())
        throw Error(
            Code::usage,
            "expected one of --input, --requests, --stream and --verify; `opwright-host --help` shows the usage");
    if (!options.requests.empty() && !options.output.empty())
        throw Error(Code::usage, "--output is for a single request: in a list, each line names its output");
    return options;
}

}  // namespace opwright::host

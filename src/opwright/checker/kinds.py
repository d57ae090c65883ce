"""The kinds of faults that a check can name, each with its likely cause and its fix."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnosis:
    """What a report tells the author of an operator about a kind of fault.

    Attributes:
        title: the fault in a few words.
        cause: its most likely cause.
        fix: what to do.
        elsewhere: what to do if somebody else registers the operator; by default, report it.
    """

    title: str
    cause: str
    fix: str
    elsewhere: str = ""


class Kind(enum.Enum):
    """A kind of fault; its value is the name that reports and `--json` use."""

    BUILD = "build"
    SIGNATURE = "signature"
    BRIDGE = "bridge"
    LOAD = "load"
    REFERENCE = "reference"
    CRASH = "crash"
    HEAP = "heap-corruption"
    HANG = "hang"
    RAISES = "raises"
    MESSAGE = "wrong-error"
    WRONG_RESULT = "wrong-result"
    WRONG_DTYPE = "wrong-dtype"
    RESULT_TYPE = "result-type"
    STRIDES = "ignored-strides"
    OFFSET = "ignored-offset"
    SIZE = "wrong-at-a-size"
    TAIL = "vector-tail"
    RANK = "wrong-at-a-rank"
    PRECISION = "lost-precision"
    MAGNITUDE = "wrong-at-a-magnitude"
    EDGE_VALUES = "edge-values"
    SPECIAL_VALUES = "special-values"
    INTEGER_VALUES = "integer-values"
    OPTION = "wrong-at-an-option"
    SHARED = "shared-arguments"
    INDEX_OVERFLOW = "index-overflow"
    OUT_OF_BOUNDS = "out-of-bounds"
    UNINITIALISED = "uninitialised-memory"
    FREED = "freed-memory"
    WRITES_INPUT = "undeclared-write"
    ALIAS = "undeclared-alias"
    STATE = "state-between-calls"
    LATE = "late-result"
    PROCESS_STATE = "process-state"
    EXIT = "process-exit"
    FORKED = "forked-process"
    CHANNEL = "forged-verdict"
    RACE = "data-race"
    THREADS = "thread-count"
    LEAK = "memory-leak"
    LAUNCH = "failed-launch"
    GPU_FAULT = "gpu-fault"
    STREAM = "wrong-stream"
    GRAPH = "cuda-graph"
    GPU = "wrong-gpu"
    BAD_INPUT = "bad-input-accepted"
    FAKE_SHAPE = "fake-shape"
    FAKE_DTYPE = "fake-dtype"
    FAKE_STRIDES = "fake-strides"
    FAKE_RAISES = "fake-raises"
    MISSING_GRADIENT = "missing-gradient"
    WRONG_GRADIENT = "wrong-gradient"
    GRADIENT_UNINITIALISED = "gradient-uninitialised"
    UNDEFINED_GRADIENT = "undefined-gradient"
    OPCHECK = "opcheck"
    NOT_IN_GRAPH = "not-in-graph"
    RUNTIME = "runtime"
    SANITIZER = "sanitizer"
    MEMCHECK = "memcheck"
    RACECHECK = "racecheck"
    INITCHECK = "initcheck"
    SYNCCHECK = "synccheck"

    @property
    def diagnosis(self) -> Diagnosis:
        """The kind's title, cause and fix."""
        return _DIAGNOSES[self]


# Faults in the numbers of a result, which unwritten elements may cause. Other kinds say that foreign memory was read.
OF_VALUES = frozenset(
    {
        *(Kind.WRONG_RESULT, Kind.SIZE, Kind.TAIL, Kind.RANK, Kind.OPTION),
        *(Kind.PRECISION, Kind.MAGNITUDE, Kind.EDGE_VALUES, Kind.SPECIAL_VALUES, Kind.INTEGER_VALUES),
    }
)

_DIAGNOSES = {
    Kind.BUILD: Diagnosis(
        "the library does not build",
        "a compiler or the linker rejected a source",
        "fix the first error that is shown; `opwright build -v` shows every step",
    ),
    Kind.SIGNATURE: Diagnosis(
        "schema and C++ signature differ",
        "the kernel's parameters or results differ from the reference's annotations",
        "change the kernel's signature, or the annotations in op.py, until they agree",
    ),
    Kind.BRIDGE: Diagnosis(
        "opwright's C++ autograd bridge does not build",
        "the compiler or PyTorch's headers reject one of opwright's own sources; the library is not at fault",
        "read the compiler's message; try another compiler or PyTorch release (`opwright doctor` shows both)",
    ),
    Kind.LOAD: Diagnosis(
        "the library does not load",
        "a namespace is taken, a library that it needs is missing, or a registration failed",
        "follow the causes in the message",
        elsewhere="follow the causes in the message",
    ),
    Kind.REFERENCE: Diagnosis(
        "the description itself is wrong",
        "the reference, the oracle or the samples in op.py raise, or return what no operator can return, or autograd "
        "does not track the reference",
        "run the repro, and fix op.py: it is the specification that everything is compared with",
        elsewhere="run the repro, and fix op.py: it is the specification that everything is compared with",
    ),
    Kind.CRASH: Diagnosis(
        "the process dies",
        "see the signal: SIGSEGV and SIGBUS mean memory outside a tensor, SIGFPE an integer divided by zero, SIGABRT "
        "an uncaught exception or a failed assertion, SIGILL an instruction that this processor lacks",
        "check sizes, strides, rank and dtype before memory is touched (opwright/check.h); "
        "--sanitize address names the line",
    ),
    Kind.HEAP: Diagnosis(
        "the heap is corrupt",
        "the kernel writes before or past the end of a buffer, or frees memory twice",
        "check every index that is written to; --sanitize address names the line",
    ),
    Kind.HANG: Diagnosis(
        "the call does not end",
        "a loop that never reaches its end, or threads that wait for each other",
        "run the repro under a debugger to see where it hangs",
    ),
    Kind.RAISES: Diagnosis(
        "the operator rejects its own sample",
        "the kernel raises where the reference returns a result",
        "accept what the samples claim, or remove the sample if it is not meant to work",
    ),
    Kind.WRONG_RESULT: Diagnosis(
        "the result is wrong",
        "kernel and reference compute different things",
        "compare the elements that are shown; the reference in op.py is the specification",
    ),
    Kind.WRONG_DTYPE: Diagnosis(
        "a wrong dtype is read as another",
        "the kernel reads the bytes of one dtype as another: data_ptr<float>() or a cast without a check of the dtype",
        'check it: opwright::check::dtype(x, "x", {opwright::ScalarType::Float}), or dispatch over dtypes',
    ),
    Kind.RESULT_TYPE: Diagnosis(
        "the result's shape or dtype differs from the reference's",
        "the kernel and the reference choose the output's shape or dtype by different rules",
        "allocate with the shape and dtype of the reference's result",
        elsewhere="if the operator is right, change the reference, or state in @op.domain which calls it is for",
    ),
    Kind.STRIDES: Diagnosis(
        "strides are ignored",
        "the kernel walks the memory as if the tensor were contiguous",
        'take torch::stable::contiguous(x), use x.strides(), or reject it: opwright::check::contiguous(x, "x")',
    ),
    Kind.OFFSET: Diagnosis(
        "the storage offset is ignored",
        "the kernel reads from the start of the storage instead of the start of the tensor",
        "use x.const_data_ptr<T>(), which includes the offset",
    ),
    Kind.SIZE: Diagnosis(
        "wrong at another size",
        "a size is hard-coded in the kernel, kept from an earlier call, or taken from the wrong dimension",
        "take every size from the tensors of the same call",
    ),
    Kind.TAIL: Diagnosis(
        "wrong at the tail of a vector loop",
        "the elements left over when the size is not a multiple of the vector width are skipped or miscounted",
        "start the scalar loop where the vector loop ended, and run it to the end",
    ),
    Kind.RANK: Diagnosis(
        "wrong with another number of dimensions",
        "sizes are taken from fixed dimensions, as in x.size(0), whatever the rank is",
        'check it: opwright::check::rank(x, "x", 2), or take every dimension into account',
    ),
    Kind.PRECISION: Diagnosis(
        "the result lost precision",
        "terms cancel, or an intermediate result is stored with too few bits",
        "compare the numbers that are shown; subtract before numbers become large, accumulate in double",
    ),
    Kind.MAGNITUDE: Diagnosis(
        "wrong at a magnitude",
        "an intermediate result overflows or underflows, or a constant (limit, epsilon) suits only some magnitudes",
        "compare the numbers that are shown; scale or shift before squares and exponentials",
    ),
    Kind.EDGE_VALUES: Diagnosis(
        "wrong at zeros, ties, signs or ordered numbers",
        "a comparison, a rounding or a special case handles these numbers differently from the reference",
        "compare the elements that are shown with what the reference returns for the same numbers",
    ),
    Kind.INTEGER_VALUES: Diagnosis(
        "wrong for other integers",
        "negative, large or repeated integers are handled differently from the reference, or not rejected",
        "check the range before memory is touched, and handle integers within it as the reference does",
    ),
    Kind.OPTION: Diagnosis(
        "wrong for another value of an option",
        "the kernel ignores the argument, supports only the samples' values, or stores it in another type",
        "support every value that the reference accepts, or reject it with an error",
    ),
    Kind.SHARED: Diagnosis(
        "wrong where arguments share memory",
        "the kernel reads what it has already overwritten, or treats arguments as the same because their memory is",
        "write to fresh memory, or copy what is still read first, and do not compare arguments by address",
    ),
    Kind.SPECIAL_VALUES: Diagnosis(
        "NaN, infinities or denormals come out wrong",
        "a comparison that is false for NaN, as in `x > m ? x : m`, swallows it; fast-math flags do so everywhere",
        "write comparisons so that NaN and infinities pass through, and build without -ffast-math",
    ),
    Kind.INDEX_OVERFLOW: Diagnosis(
        "an index overflows",
        "an offset is computed in 32 bits: index times stride does not fit into int",
        "use int64_t for sizes, strides, indices and their products",
    ),
    Kind.OUT_OF_BOUNDS: Diagnosis(
        "the kernel reads outside of an argument, or requires a larger alignment",
        "an index or a vector load goes past the last element, or a load expects more than an element's alignment",
        "check indices, end the vector loop at the last whole vector, and use unaligned loads; --sanitize address "
        "names the line",
    ),
    Kind.UNINITIALISED: Diagnosis(
        "the result holds uninitialised memory",
        "the output comes from empty() and some of its elements are never written",
        "write every element, the last row and empty reductions too, or allocate zeros",
    ),
    Kind.FREED: Diagnosis(
        "the result shows memory that was freed",
        "the result is a view (from_blob) of a buffer that the kernel released when it returned",
        "pass from_blob a deleter that owns the buffer, or copy into a fresh tensor",
    ),
    Kind.WRITES_INPUT: Diagnosis(
        "an input is changed, and the schema does not declare it",
        "the kernel writes to an argument in place",
        'write to a copy, or declare it: @library.op(mutates=("x",))',
        elsewhere="the registered schema must declare what is written, as in Tensor(a!): report it to the maintainers",
    ),
    Kind.ALIAS: Diagnosis(
        "a result shares memory with an input, and the schema does not declare it",
        "the kernel returns its argument, or a view of it",
        "return a copy: torch.compile and autograd assume that results are fresh memory",
    ),
    Kind.STATE: Diagnosis(
        "a call changes the result of another one",
        "the kernel keeps something between calls: a static buffer, a counter, a cache without a key",
        "keep nothing, or make the key complete; results must own their memory",
    ),
    Kind.LATE: Diagnosis(
        "the result changes after the call has returned",
        "the kernel leaves its work to a thread that it does not wait for",
        "wait for the work before the call returns",
    ),
    Kind.PROCESS_STATE: Diagnosis(
        "a call changes the state of the process",
        "the kernel sets a mode of the processor, of PyTorch or of the process and does not restore it",
        "leave the mode as it is, or restore it before the call returns, also after an error",
    ),
    Kind.EXIT: Diagnosis(
        "the process ends during a call, or does not exit cleanly",
        "the kernel calls exit, does not join a thread, or destroys a static object while a thread uses it",
        "raise errors instead; join threads and free resources before the call returns",
    ),
    Kind.FORKED: Diagnosis(
        "a call fails in a forked process",
        "the library started threads, or held a lock, in the parent process; a forked process, such as a worker of a "
        "DataLoader, has none of these threads",
        "let PyTorch's parallel_for start the threads, or start them anew in each process (pthread_atfork)",
    ),
    Kind.CHANNEL: Diagnosis(
        "the operator writes to the channel of the check",
        "native code writes to file descriptors that it did not open",
        "write only to files that the operator opens; results are judged outside its process",
    ),
    Kind.RACE: Diagnosis(
        "calls from several threads at once disturb each other",
        "threads share a buffer or a sum without a lock: results are wrong, or the process ends",
        "keep scratch memory local to the call, and give each thread its own part of the output",
    ),
    Kind.THREADS: Diagnosis(
        "the result depends on the number of threads",
        "parts are combined wrongly: a remainder is left out, or a part is counted once for every thread",
        "let parallel_for divide the range, and cover [begin, end) whatever it is",
    ),
    Kind.LEAK: Diagnosis(
        "memory grows with each call",
        "something is allocated and never released: new without delete, a handle, a growing static container",
        "hold memory in std::vector, std::unique_ptr or a Tensor",
    ),
    Kind.LAUNCH: Diagnosis(
        "a kernel was never launched",
        "the launch asks for more threads (1024 in a block), blocks (65535 in y and z) or shared memory (48 KiB by "
        "default) than there are, or for no blocks",
        "launch a number of blocks and threads that suits every size, let each thread take several elements, return "
        "early where there are none, and check each launch: STD_CUDA_KERNEL_LAUNCH_CHECK()",
    ),
    Kind.GPU_FAULT: Diagnosis(
        "a kernel ends all work on the GPU",
        "a kernel reads or writes outside of its tensors, at an address that is not a multiple of the size of its "
        "vector, or fails an assertion: every later CUDA call of the process fails",
        "guard every index, and use vectors only where each row starts at a multiple of their size; compute-sanitizer "
        "names the line",
    ),
    Kind.STREAM: Diagnosis(
        "the kernel does not run on the current stream",
        "it is launched on the default stream, as with <<<blocks, threads>>>, or on a stream of its own: it does not "
        "wait for its arguments, nor PyTorch for its results",
        "launch on the stream of aoti_torch_get_current_cuda_stream; let a stream of your own wait for an event on it, "
        "and it for an event on yours",
    ),
    Kind.GRAPH: Diagnosis(
        "the call cannot be captured in a CUDA graph, or its replay is wrong",
        "it waits for the GPU, allocates with cudaMalloc, reads numbers on the processor, or works on a stream that is "
        "not captured",
        "do everything in kernels and asynchronous copies on the current stream, and take memory from PyTorch",
    ),
    Kind.GPU: Diagnosis(
        "wrong on a GPU that is not the current one",
        "the kernel runs on the current GPU and not on that of its arguments, or changes the current GPU",
        "hold a torch::stable::accelerator::DeviceGuard for the GPU of the arguments during the call",
    ),
    Kind.BAD_INPUT: Diagnosis(
        "what the reference rejects is accepted",
        "the kernel does not check dtype, device, rank or sizes, and reads out of bounds",
        "check every argument before memory is touched: opwright/check.h",
        elsewhere="report it to the maintainers; if the operator is right, let the reference accept the call too",
    ),
    Kind.MESSAGE: Diagnosis(
        "the error has another message",
        "another check comes first, or none does and a later call fails",
        "check the arguments in the order of the messages in @op.errors, or correct the message there",
        elsewhere="correct the message in @op.errors",
    ),
    Kind.FAKE_SHAPE: Diagnosis(
        "the fake kernel returns another shape",
        "@op.fake and the kernel compute the result's sizes by different rules",
        "remove the hand-written fake (the reference then serves), or fix its sizes",
    ),
    Kind.FAKE_DTYPE: Diagnosis(
        "the fake kernel returns another dtype or device",
        "@op.fake and the kernel choose the result's dtype by different rules",
        "remove the hand-written fake (the reference then serves), or fix its dtype",
    ),
    Kind.FAKE_STRIDES: Diagnosis(
        "the fake kernel returns other strides",
        "the result's strides are not the reference's: torch.compile reads it with those of the fake kernel",
        "end the reference with .contiguous() if the kernel's result is row-major, or allocate with empty_like",
    ),
    Kind.FAKE_RAISES: Diagnosis(
        "the fake kernel raises",
        "the reference reads numbers from the tensors, which fake tensors do not have",
        "write @op.fake: a function that returns empty results of the right shape and dtype",
    ),
    Kind.MISSING_GRADIENT: Diagnosis(
        "there is no gradient where the reference has one",
        "the native backward returns nothing for an argument whose gradient is wanted",
        "return every wanted gradient from the backward; leave an argument that has none out of differentiable=",
    ),
    Kind.WRONG_GRADIENT: Diagnosis(
        "a gradient is wrong",
        "the backward's formula differs from the derivative of the reference",
        "compare the numbers that are shown; without a native backward, the reference's own gradient serves",
    ),
    Kind.GRADIENT_UNINITIALISED: Diagnosis(
        "a gradient is not zeroed, or not all of it is written",
        "the backward adds into memory from empty(), or keeps sums from the call before",
        "start from zeros, and write every element",
    ),
    Kind.UNDEFINED_GRADIENT: Diagnosis(
        "a result without an incoming gradient is not handled",
        "the backward assumes every incoming gradient; autograd passes none for a result that is not used",
        "treat an absent gradient (std::nullopt) as zero",
    ),
    Kind.OPCHECK: Diagnosis(
        "torch.library.opcheck fails",
        "the registration violates a rule of PyTorch",
        "read its message below",
    ),
    Kind.NOT_IN_GRAPH: Diagnosis(
        "the graph does not contain the operator",
        "it was decomposed or optimized away when the graph was made",
        "register a kernel of the operator for this device",
    ),
    Kind.RUNTIME: Diagnosis(
        "the runtime does not accept the operator",
        "the step that is shown failed",
        "read the message; docs/runtimes.md lists what this runtime requires",
    ),
    Kind.SANITIZER: Diagnosis(
        "a sanitizer reports an error",
        "the native code violates a rule of the language, in the line that is shown",
        "fix that line",
    ),
    Kind.MEMCHECK: Diagnosis(
        "a kernel accesses memory of nobody, or a call of CUDA fails",
        "an index goes past the end of a tensor or of shared memory, often in the last block or the last row; or an "
        "address is not aligned; that the result is right is luck",
        "compare the index with the size before the access, also where the value is not used",
    ),
    Kind.RACECHECK: Diagnosis(
        "threads of a block race for shared memory",
        "one thread reads or overwrites what another one writes, and no barrier between them orders the two",
        "put __syncthreads() between the two accesses, or __syncwarp() if all threads are of one warp: the threads of "
        "a warp do not run in step",
    ),
    Kind.INITCHECK: Diagnosis(
        "a kernel reads memory that nothing has written",
        "scratch memory from empty() is read past what was filled, such as the padding of a row",
        "read only what was written, or fill the rest first",
    ),
    Kind.SYNCCHECK: Diagnosis(
        "not all threads of a block reach the same barrier",
        "__syncthreads() is in a branch that some threads do not take, or the mask of "
        "__syncwarp() lacks a thread that calls it",
        "move the barrier out of the branch, and let threads without work go to it too",
    ),
}

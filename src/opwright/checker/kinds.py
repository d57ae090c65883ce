"""The kinds of faults that a check can name, each with its likely cause and its fix."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnosis:
    """The explanation of a kind of fault that reports print for the author of an operator.

    Attributes:
        title: the fault in a few words.
        cause: its most likely cause.
        fix: what to do.
        elsewhere: what to do if the operator belongs to an external library; by default, report it to the maintainers.
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


# Faults in the values of a result, which unwritten elements may cause. Other kinds show that memory outside the
# arguments was read.
OF_VALUES = frozenset(
    {
        *(Kind.WRONG_RESULT, Kind.SIZE, Kind.TAIL, Kind.RANK, Kind.OPTION),
        *(Kind.PRECISION, Kind.MAGNITUDE, Kind.EDGE_VALUES, Kind.SPECIAL_VALUES, Kind.INTEGER_VALUES),
    }
)

_DIAGNOSES = {
    Kind.BUILD: Diagnosis(
        "the library does not build",
        "the compiler rejected a source, or the linker failed",
        "fix the first error shown; `opwright build -v` prints every step",
    ),
    Kind.SIGNATURE: Diagnosis(
        "the schema and the C++ signature differ",
        "the kernel's parameters or results differ from the reference's annotations",
        "change the kernel's signature or the annotations in op.py so that they agree",
    ),
    Kind.BRIDGE: Diagnosis(
        "opwright's C++ autograd bridge does not build",
        "one of opwright's own sources does not compile with this compiler and this PyTorch; the library is not the "
        "cause",
        "read the compiler's message; try another compiler or PyTorch release (`opwright doctor` shows both)",
    ),
    Kind.LOAD: Diagnosis(
        "the library does not load",
        "its namespace is already taken, a library that it requires is missing, or a registration failed",
        "fix the cause that the message shows",
        elsewhere="fix the cause that the message shows",
    ),
    Kind.REFERENCE: Diagnosis(
        "the description in op.py is wrong",
        "the reference, the oracle or the samples raise an error, end the process or return a value that no operator "
        "can return, or autograd does not track the reference",
        "run the repro and fix op.py: all results are compared with its reference",
        elsewhere="run the repro and fix op.py: all results are compared with its reference",
    ),
    Kind.CRASH: Diagnosis(
        "the process crashes",
        "the signal indicates the cause: an access outside a tensor (SIGSEGV, SIGBUS), an integer division by zero "
        "(SIGFPE), an uncaught exception or a failed assertion (SIGABRT), or an instruction that this processor does "
        "not support (SIGILL)",
        "check sizes, strides, rank and dtype before accessing memory (opwright/check.h); "
        "--sanitize address reports the line",
    ),
    Kind.HEAP: Diagnosis(
        "the heap is corrupted",
        "the kernel writes before the start or past the end of a buffer, or frees memory twice",
        "check every index before writing; --sanitize address reports the line",
    ),
    Kind.HANG: Diagnosis(
        "the call hangs",
        "a loop never terminates, or threads deadlock",
        "run the repro in a debugger to see where the call hangs",
    ),
    Kind.RAISES: Diagnosis(
        "the operator rejects one of its own samples",
        "the kernel raises an error where the reference returns a result",
        "accept every call in the samples, or remove the sample if the call is not meant to work",
    ),
    Kind.WRONG_RESULT: Diagnosis(
        "the result is wrong",
        "the kernel and the reference compute different results",
        "compare the elements shown; the reference in op.py is the specification",
    ),
    Kind.WRONG_DTYPE: Diagnosis(
        "a tensor is read as the wrong dtype",
        "the kernel reads the bytes of one dtype as another: `data_ptr<float>()` or a cast without a dtype check",
        'check the dtype: opwright::check::dtype(x, "x", {opwright::ScalarType::Float}), or dispatch over dtypes',
    ),
    Kind.RESULT_TYPE: Diagnosis(
        "the result's shape or dtype differs from the reference's",
        "the kernel determines the shape or dtype of its result differently from the reference",
        "allocate the output with the shape and dtype of the reference's result",
        elsewhere="if the operator is right, change the reference, or exclude such calls in @op.domain",
    ),
    Kind.STRIDES: Diagnosis(
        "strides are ignored",
        "the kernel indexes memory as if the tensor were contiguous",
        'call torch::stable::contiguous(x), use x.strides(), or reject the tensor: opwright::check::contiguous(x, "x")',
    ),
    Kind.OFFSET: Diagnosis(
        "the storage offset is ignored",
        "the kernel reads from the start of the storage instead of the start of the tensor",
        "use `x.const_data_ptr<T>()`, which includes the offset",
    ),
    Kind.SIZE: Diagnosis(
        "wrong for other sizes",
        "a size is hard-coded in the kernel, kept from an earlier call, or read from the wrong dimension",
        "read every size from the tensors of the current call",
    ),
    Kind.TAIL: Diagnosis(
        "wrong in the tail of a vector loop",
        "the kernel skips or miscounts the elements that remain when the size is not a multiple of the vector width",
        "start the scalar loop where the vector loop stopped, and run it to the last element",
    ),
    Kind.RANK: Diagnosis(
        "wrong for other numbers of dimensions",
        "the kernel reads sizes from fixed dimensions, such as x.size(0), regardless of the rank",
        'check the rank: opwright::check::rank(x, "x", 2), or handle every dimension',
    ),
    Kind.PRECISION: Diagnosis(
        "the result loses precision",
        "large terms cancel, or an intermediate result is stored with too little precision",
        "compare the numbers shown; subtract before the numbers become large, for example before squaring, and "
        "accumulate in double",
    ),
    Kind.MAGNITUDE: Diagnosis(
        "wrong at some magnitudes",
        "an intermediate result overflows or underflows, or a constant (limit, epsilon) suits only some magnitudes",
        "compare the numbers shown; scale or shift before computing squares and exponentials",
    ),
    Kind.EDGE_VALUES: Diagnosis(
        "wrong for zeros, ties, certain signs or sorted values",
        "a comparison, a rounding step or a special case treats these values differently from the reference",
        "compare the elements shown with the reference's results for the same values",
    ),
    Kind.INTEGER_VALUES: Diagnosis(
        "wrong for other integer values",
        "the kernel handles negative, large or repeated integers differently from the reference, or does not reject "
        "them",
        "check the range before accessing memory, and handle integers in the range as the reference does",
    ),
    Kind.OPTION: Diagnosis(
        "wrong for other values of an option",
        "the kernel ignores the argument, supports only the values in the samples, or stores it in a different type",
        "support every value that the reference accepts, or raise an error for unsupported values",
    ),
    Kind.SHARED: Diagnosis(
        "wrong when arguments share memory",
        "the kernel reads memory that it has already overwritten, or treats arguments as identical because they share "
        "memory",
        "write to newly allocated memory, or first copy what the kernel reads later; do not compare arguments by "
        "address",
    ),
    Kind.SPECIAL_VALUES: Diagnosis(
        "NaN, infinities or denormals are handled incorrectly",
        "a comparison such as `x > m ? x : m` is false for NaN and discards it; with -ffast-math, the compiler assumes "
        "that NaN and infinities do not occur",
        "write comparisons that propagate NaN and infinities, and build without -ffast-math",
    ),
    Kind.INDEX_OVERFLOW: Diagnosis(
        "an index overflows",
        "an offset is computed in 32 bits, and index times stride does not fit in an int",
        "use int64_t for sizes, strides, indices and their products",
    ),
    Kind.OUT_OF_BOUNDS: Diagnosis(
        "the kernel reads outside an argument, or assumes too large an alignment",
        "an index or a vector load goes past the last element, or a load assumes a larger alignment than that of an "
        "element",
        "check every index, end the vector loop at the last full vector, and use unaligned loads; --sanitize address "
        "reports the line",
    ),
    Kind.UNINITIALISED: Diagnosis(
        "the result contains uninitialized memory",
        "the output comes from empty(), and some of its elements are never written",
        "write every element, including the last row and empty reductions, or allocate zeros",
    ),
    Kind.FREED: Diagnosis(
        "the result refers to freed memory",
        "the result is a view (from_blob) of a buffer that the kernel frees when it returns",
        "pass from_blob a deleter that owns the buffer, or copy the data into a new tensor",
    ),
    Kind.WRITES_INPUT: Diagnosis(
        "the operator mutates an input, but the schema does not declare the mutation",
        "the kernel modifies an argument in place",
        'write to a copy, or declare the mutation: @library.op(mutates=("x",))',
        elsewhere="the registered schema must declare every mutation, as in Tensor(a!): report it to the maintainers",
    ),
    Kind.ALIAS: Diagnosis(
        "a result aliases an input, but the schema does not declare the alias",
        "the kernel returns its argument, or a view of it",
        "return a copy: torch.compile and autograd assume that results do not alias inputs",
    ),
    Kind.STATE: Diagnosis(
        "one call changes the result of another",
        "the kernel keeps state between calls: a static buffer, a counter, a cache without a key",
        "keep no state, or make the cache key complete; results must own their memory",
    ),
    Kind.LATE: Diagnosis(
        "the result changes after the call returns",
        "the kernel starts work on another thread and does not wait for it",
        "wait for the work to finish before returning",
    ),
    Kind.PROCESS_STATE: Diagnosis(
        "a call changes the state of the process",
        "the kernel changes a mode of the processor, of PyTorch or of the process, and does not restore it",
        "leave the mode unchanged, or restore it before the call returns or raises",
    ),
    Kind.EXIT: Diagnosis(
        "the process exits during a call, or does not exit cleanly",
        "the kernel calls exit, does not join a thread, or destroys a static object that a thread still uses",
        "raise an error instead of calling exit; join threads and free resources before the call returns",
    ),
    Kind.FORKED: Diagnosis(
        "a call fails in a forked process",
        "the library started threads, or held a lock, in the parent process; a forked process, such as a DataLoader "
        "worker, does not inherit the threads",
        "let PyTorch's parallel_for start the threads, or start them again in each process (pthread_atfork)",
    ),
    Kind.CHANNEL: Diagnosis(
        "the operator writes to the check's internal socket",
        "native code writes to file descriptors that it did not open",
        "write only to files that the operator opens",
    ),
    Kind.RACE: Diagnosis(
        "concurrent calls interfere with each other",
        "threads share a buffer or a sum without synchronization: results are wrong, or the process crashes",
        "keep scratch memory local to the call, and give each thread its own part of the output",
    ),
    Kind.THREADS: Diagnosis(
        "the result depends on the number of threads",
        "partial results are combined incorrectly: a remainder is left out, or a part is counted once per thread",
        "let parallel_for divide the range, and process all of [begin, end)",
    ),
    Kind.LEAK: Diagnosis(
        "memory usage grows with each call",
        "memory or a handle is allocated and never released: new without delete, or a static container that grows",
        "hold memory in std::vector, std::unique_ptr or a Tensor",
    ),
    Kind.LAUNCH: Diagnosis(
        "a kernel launch failed",
        "the launch requests more threads (at most 1024 per block), blocks (at most 65535 in y and z) or shared memory "
        "(48 KiB by default) than the GPU allows, or requests no blocks",
        "choose numbers of blocks and threads that are valid for every size, let each thread process several elements, "
        "return early for empty tensors, and check each launch with STD_CUDA_KERNEL_LAUNCH_CHECK()",
    ),
    Kind.GPU_FAULT: Diagnosis(
        "a kernel leaves the GPU unusable for the process",
        "a kernel reads or writes outside its tensors, accesses a vector at a misaligned address, or fails an "
        "assertion: every later CUDA call in the process fails",
        "check every index, and use vectors only if each row starts at a multiple of the vector's size; "
        "compute-sanitizer reports the line",
    ),
    Kind.STREAM: Diagnosis(
        "the kernel does not run on the current stream",
        "the kernel is launched on the default stream, as with <<<blocks, threads>>>, or on a separate stream: it does "
        "not wait for its arguments, and PyTorch does not wait for its results",
        "launch on the stream that aoti_torch_get_current_cuda_stream provides; if you use your own stream, make it "
        "wait for an event on the current stream, and make the current stream wait for an event on yours",
    ),
    Kind.GRAPH: Diagnosis(
        "the call cannot be captured in a CUDA graph, or its replay returns wrong results",
        "the call synchronizes with the GPU, allocates with cudaMalloc, reads values on the CPU, or uses a stream that "
        "is not captured",
        "do all work in kernels and asynchronous copies on the current stream, and allocate memory through PyTorch",
    ),
    Kind.GPU: Diagnosis(
        "wrong on a GPU other than the current one",
        "the kernel runs on the current GPU instead of the GPU of its arguments, or changes the current GPU",
        "hold a torch::stable::accelerator::DeviceGuard for the GPU of the arguments during the call",
    ),
    Kind.BAD_INPUT: Diagnosis(
        "the operator accepts an input that the reference rejects",
        "the kernel does not check the dtype, device, rank or sizes, and may read out of bounds",
        "check every argument before accessing memory (opwright/check.h)",
        elsewhere="report it to the maintainers; if the operator is right, make the reference accept the call too",
    ),
    Kind.MESSAGE: Diagnosis(
        "the error message differs from the one in @op.errors",
        "another check runs first, or no check runs and a later call fails",
        "check the arguments in the order of the messages in @op.errors, or correct the message",
        elsewhere="correct the message in @op.errors",
    ),
    Kind.FAKE_SHAPE: Diagnosis(
        "the fake kernel returns a different shape",
        "@op.fake computes the sizes of the result differently from the kernel",
        "remove @op.fake, so that the reference is used instead, or correct its sizes",
    ),
    Kind.FAKE_DTYPE: Diagnosis(
        "the fake kernel returns a different dtype or device",
        "@op.fake chooses the dtype or device of the result differently from the kernel",
        "remove @op.fake, so that the reference is used instead, or correct its dtype or device",
    ),
    Kind.FAKE_STRIDES: Diagnosis(
        "the fake kernel returns different strides",
        "the kernel and the reference return different strides; torch.compile reads the result with the strides of the "
        "fake kernel",
        "end the reference with .contiguous() if the kernel's result is row-major, or allocate with empty_like",
    ),
    Kind.FAKE_RAISES: Diagnosis(
        "the fake kernel raises an error",
        "the reference reads tensor values, which fake tensors do not have",
        "write @op.fake: a function that returns empty tensors of the right shape and dtype",
    ),
    Kind.MISSING_GRADIENT: Diagnosis(
        "there is no gradient where the reference has one",
        "the native backward returns no gradient for an argument that requires one",
        "return every required gradient from the backward; remove arguments without a gradient from differentiable=",
    ),
    Kind.WRONG_GRADIENT: Diagnosis(
        "a gradient is wrong",
        "the backward's formula differs from the derivative of the reference",
        "compare the numbers shown; without a native backward, the gradient is derived from the reference",
    ),
    Kind.GRADIENT_UNINITIALISED: Diagnosis(
        "a gradient is not zeroed, or not fully written",
        "the backward accumulates into memory from empty(), or keeps sums from the previous call",
        "start from zeros, and write every element",
    ),
    Kind.UNDEFINED_GRADIENT: Diagnosis(
        "an undefined incoming gradient is not handled",
        "the backward assumes that every incoming gradient is defined; autograd passes an undefined gradient for an "
        "unused result",
        "treat an undefined gradient (std::nullopt) as zero",
    ),
    Kind.OPCHECK: Diagnosis(
        "torch.library.opcheck fails",
        "the registration violates PyTorch's rules for operators",
        "read opcheck's message",
    ),
    Kind.NOT_IN_GRAPH: Diagnosis(
        "the graph does not contain the operator",
        "the operator was decomposed or optimized away when the graph was built",
        "register a kernel for the operator on this device",
    ),
    Kind.RUNTIME: Diagnosis(
        "the operator does not work in this runtime",
        "the step shown failed",
        "read the message; docs/reference/runtimes.md lists what this runtime requires",
    ),
    Kind.SANITIZER: Diagnosis(
        "a sanitizer reports an error",
        "the line shown has a memory error, undefined behavior or a data race",
        "fix that line",
    ),
    Kind.MEMCHECK: Diagnosis(
        "a kernel accesses invalid memory, or a CUDA call fails",
        "an index goes past the end of a tensor or of shared memory, often in the last block or the last row, or an "
        "address is misaligned; the result may be right only by chance",
        "compare the index with the size before each access, even if the value is not used",
    ),
    Kind.RACECHECK: Diagnosis(
        "threads of a block race on shared memory",
        "one thread reads or overwrites what another thread writes, and no barrier orders the two accesses",
        "put __syncthreads() between the two accesses, or __syncwarp() if all threads belong to one warp: the threads "
        "of a warp do not run in lockstep",
    ),
    Kind.INITCHECK: Diagnosis(
        "a kernel reads memory that was never written",
        "the kernel reads scratch memory from empty() beyond the part that it filled, such as the padding of a row",
        "read only what was written, or fill the rest first",
    ),
    Kind.SYNCCHECK: Diagnosis(
        "not all threads of a block reach the same barrier",
        "__syncthreads() is in a branch that some threads do not take, or the mask of __syncwarp() omits a thread that "
        "calls it",
        "move the barrier out of the branch, so that threads without work reach it too",
    ),
}

# Writing. The bytes are collected on the caller's stack, and in a bytes object when they are too many for it. Every
# function returns whether it succeeded. False leaves the whole message to Python: for values of a wrong type or
# out of range, values that are legal but unusual, and lack of memory. No Python code runs in between (and nothing is
# allocated that could start the garbage collector), so that nothing changes while it is written. A field whose attribute was deleted is NULL.

cdef enum:
    STACK_BYTES = 1024
    SPARE_BYTES = 256
    BLOB_BYTES = 4096  # from this size on, bytes become a separate piece if pieces are requested

cdef struct Writer:
    char* at
    char* limit
    char* start
    PyObject* buffer  # holds the bytes from start to limit; NULL while they are on the stack
    PyObject* pieces  # a list of complete pieces; NULL if no pieces are requested
    int nested        # the number of open tagged fields; their sizes must be known, so they stay in one piece

ctypedef bint (*WriteStruct)(Writer* w, PyObject* value, int version) noexcept
ctypedef bint (*PutNumber)(char* at, PyObject* value) noexcept


cdef inline void start_writing(Writer* w, char* stack) noexcept:
    w.start = w.at = stack
    w.limit = stack + STACK_BYTES
    w.buffer = w.pieces = NULL
    w.nested = 0


cdef void abandon(Writer* w) noexcept:
    Py_XDECREF(w.buffer)
    Py_XDECREF(w.pieces)


cdef PyObject* written(Writer* w) noexcept:
    # Return the collected bytes; NULL for lack of memory. The writer keeps none of them.
    cdef PyObject* found = w.buffer
    if found == NULL:
        return PyBytes_FromStringAndSize(w.start, w.at - w.start)
    w.buffer = NULL
    _PyBytes_Resize(&found, w.at - w.start)  # sets it to NULL on failure
    return found


cdef bint grow(Writer* w, size_t size) noexcept:
    cdef Py_ssize_t used = w.at - w.start
    cdef size_t wanted = <size_t> used + size
    cdef PyObject* buffer = w.buffer
    wanted += SPARE_BYTES + (used if used > 16384 else 3 * used)
    if wanted > PY_SSIZE_T_MAX // 2:
        return False
    if buffer == NULL:
        buffer = PyBytes_FromStringAndSize(NULL, wanted)
        if buffer == NULL:
            return False
        memcpy(PyBytes_AS_STRING(buffer), w.start, used)
        w.buffer = buffer
    elif _PyBytes_Resize(&w.buffer, wanted) < 0:
        return False
    w.start = PyBytes_AS_STRING(w.buffer)
    w.at = w.start + used
    w.limit = w.start + wanted
    return True


cdef inline bint room(Writer* w, size_t size) noexcept:
    return <size_t> (w.limit - w.at) >= size or grow(w, size)


# Numbers; the caller has reserved room for them.

cdef inline void store16(char* at, uint16_t value) noexcept:
    at[0] = <char> (value >> 8)
    at[1] = <char> value


cdef inline void store32(char* at, uint32_t value) noexcept:
    at[0] = <char> (value >> 24)
    at[1] = <char> (value >> 16)
    at[2] = <char> (value >> 8)
    at[3] = <char> value


cdef inline void store64(char* at, uint64_t value) noexcept:
    store32(at, <uint32_t> (value >> 32))
    store32(at + 4, <uint32_t> value)


cdef inline bint integer(PyObject* value, int64_t lowest, int64_t highest, int64_t* found) noexcept:
    # Enumerations and bool are integers.
    cdef int overflow
    if value == NULL or not PyLong_Check(value):
        return False
    found[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return not overflow and lowest <= found[0] <= highest


cdef inline bint put_bool(char* at, PyObject* value) noexcept:
    at[0] = value == Py_True
    return value == Py_True or value == Py_False


cdef inline bint put_int8(char* at, PyObject* value) noexcept:
    cdef int64_t number
    if not integer(value, -0x80, 0x7F, &number):
        return False
    at[0] = <char> number
    return True


cdef inline bint put_int16(char* at, PyObject* value) noexcept:
    cdef int64_t number
    if not integer(value, -0x8000, 0x7FFF, &number):
        return False
    store16(at, <uint16_t> number)
    return True


cdef inline bint put_uint16(char* at, PyObject* value) noexcept:
    cdef int64_t number
    if not integer(value, 0, 0xFFFF, &number):
        return False
    store16(at, <uint16_t> number)
    return True


cdef inline bint put_int32(char* at, PyObject* value) noexcept:
    cdef int64_t number
    if not integer(value, -<int64_t> 0x80000000, 0x7FFFFFFF, &number):
        return False
    store32(at, <uint32_t> number)
    return True


cdef inline bint put_uint32(char* at, PyObject* value) noexcept:
    cdef int64_t number
    if not integer(value, 0, <int64_t> 0xFFFFFFFF, &number):
        return False
    store32(at, <uint32_t> number)
    return True


cdef inline bint put_int64(char* at, PyObject* value) noexcept:
    cdef int64_t number
    if not integer(value, INT64_MIN, INT64_MAX, &number):
        return False
    store64(at, <uint64_t> number)
    return True


cdef bint put_float64(char* at, PyObject* value) noexcept:
    cdef uint64_t bits
    cdef double number
    if value == NULL or not PyFloat_Check(value):
        return False
    number = PyFloat_AS_DOUBLE(value)
    memcpy(&bits, &number, sizeof(bits))
    store64(at, bits)
    return True


cdef inline bint put_uuid(char* at, PyObject* value) noexcept:
    if value == NULL or not PyBytes_Check(value) or PyBytes_GET_SIZE(value) != 16:
        return False
    memcpy(at, PyBytes_AS_STRING(value), 16)
    return True


# Sizes.

cdef inline bint write_uvarint(Writer* w, uint32_t value) noexcept:
    if not room(w, 5):
        return False
    while value >= 0x80:
        w.at[0] = <char> (value & 0x7F | 0x80)
        w.at += 1
        value >>= 7
    w.at[0] = <char> value
    w.at += 1
    return True


cdef inline bint write_size(Writer* w, Py_ssize_t size, bint compact, int width) noexcept:
    # Write one more than the size, or the size in this many bytes.
    if size >= 0x7FFFFFFF:
        return False
    if compact:
        return write_uvarint(w, <uint32_t> size + 1)
    if not room(w, 4):
        return False
    if width == 2:
        store16(w.at, <uint16_t> size)
    else:
        store32(w.at, <uint32_t> size)
    w.at += width
    return True


cdef bint write_null(Writer* w, bint compact, bint nullable, int width) noexcept:
    if not nullable or not room(w, 4):
        return False
    if compact:
        w.at[0] = 0
        w.at += 1
    else:
        memset(w.at, 0xFF, width)
        w.at += width
    return True


cdef bint write_byte(Writer* w, uint8_t value) noexcept:
    if not room(w, 1):
        return False
    w.at[0] = <char> value
    w.at += 1
    return True


# Strings and bytes.

cdef bint write_text(Writer* w, const char* raw, Py_ssize_t size, bint compact) noexcept:
    if size > MAX_STRING_BYTES or not write_size(w, size, compact, 2) or not room(w, size):
        return False
    memcpy(w.at, raw, size)
    w.at += size
    return True


cdef bint write_string(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    cdef PyObject* raw
    cdef bint done
    if value == Py_None:
        return write_null(w, compact, nullable, 2)
    if value == NULL or not PyUnicode_CheckExact(value):
        return False
    if PyUnicode_IS_COMPACT_ASCII(value):
        return write_text(w, <const char*> PyUnicode_DATA(value), PyUnicode_GET_LENGTH(value), compact)
    raw = PyUnicode_AsUTF8String(value)
    if raw == NULL:  # half a surrogate pair
        return False
    done = write_text(w, PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw), compact)
    Py_DECREF(raw)
    return done


cdef bint write_blob(Writer* w, PyObject* value) noexcept:
    # The complete part becomes a piece and the blob another, without a copy; the room is used again.
    cdef PyObject* before = PyBytes_FromStringAndSize(w.start, w.at - w.start)
    cdef bint done
    if before == NULL:
        return False
    done = PyList_Append(w.pieces, before) == 0 and PyList_Append(w.pieces, value) == 0
    Py_DECREF(before)
    w.at = w.start
    return done


cdef bint write_bytes(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    cdef Py_ssize_t size
    if value == Py_None:
        return write_null(w, compact, nullable, 4)
    if value == NULL or not PyBytes_Check(value):
        return False
    size = PyBytes_GET_SIZE(value)
    if not write_size(w, size, compact, 4):
        return False
    if size >= BLOB_BYTES and w.pieces != NULL and w.nested == 0 and PyBytes_CheckExact(value):
        return write_blob(w, value)
    if not room(w, size):
        return False
    memcpy(w.at, PyBytes_AS_STRING(value), size)
    w.at += size
    return True


# Arrays.

cdef inline bint elements(PyObject* value, PyObject*** items, Py_ssize_t* count) noexcept:
    if value == NULL:
        return False
    if PyTuple_CheckExact(value):
        items[0] = (<PyTupleObject*> value).ob_item
        count[0] = PyTuple_GET_SIZE(value)
    elif PyList_CheckExact(value):
        items[0] = (<PyListObject*> value).ob_item
        count[0] = PyList_GET_SIZE(value)
    else:
        return False
    return True


cdef inline bint write_numbers(
    Writer* w, PyObject* value, bint compact, bint nullable, PutNumber put_number, int width
) noexcept:
    cdef PyObject** items
    cdef Py_ssize_t count, index
    if value == Py_None:
        return write_null(w, compact, nullable, 4)
    if not elements(value, &items, &count):
        return False
    if not write_size(w, count, compact, 4) or not room(w, count * width):
        return False
    for index in range(count):
        if not put_number(w.at, items[index]):
            return False
        w.at += width
    return True


cdef bint write_int8s(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    return write_numbers(w, value, compact, nullable, put_int8, 1)


cdef bint write_int16s(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    return write_numbers(w, value, compact, nullable, put_int16, 2)


cdef bint write_int32s(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    return write_numbers(w, value, compact, nullable, put_int32, 4)


cdef bint write_int64s(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    return write_numbers(w, value, compact, nullable, put_int64, 8)


cdef bint write_uint16s(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    return write_numbers(w, value, compact, nullable, put_uint16, 2)


cdef bint write_uint32s(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    return write_numbers(w, value, compact, nullable, put_uint32, 4)


cdef bint write_float64s(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    return write_numbers(w, value, compact, nullable, put_float64, 8)


cdef bint write_bools(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    return write_numbers(w, value, compact, nullable, put_bool, 1)


cdef bint write_uuids(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    return write_numbers(w, value, compact, nullable, put_uuid, 16)


cdef bint write_strings(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    cdef PyObject** items
    cdef Py_ssize_t count, index
    if value == Py_None:
        return write_null(w, compact, nullable, 4)
    if not elements(value, &items, &count) or not write_size(w, count, compact, 4):
        return False
    for index in range(count):
        if not write_string(w, items[index], compact, False):
            return False
    return True


cdef bint write_byte_strings(Writer* w, PyObject* value, bint compact, bint nullable) noexcept:
    cdef PyObject** items
    cdef Py_ssize_t count, index
    if value == Py_None:
        return write_null(w, compact, nullable, 4)
    if not elements(value, &items, &count) or not write_size(w, count, compact, 4):
        return False
    for index in range(count):
        if not write_bytes(w, items[index], compact, False):
            return False
    return True


cdef bint write_structs(
    Writer* w, PyObject* value, bint compact, bint nullable, int version, WriteStruct write
) noexcept:
    cdef PyObject** items
    cdef Py_ssize_t count, index
    if value == Py_None:
        return write_null(w, compact, nullable, 4)
    if not elements(value, &items, &count) or not write_size(w, count, compact, 4):
        return False
    for index in range(count):
        if not write(w, items[index], version):
            return False
    return True


# Structs that may be null.

cdef bint write_nullable_struct(Writer* w, PyObject* value, int version, WriteStruct write) noexcept:
    if value == Py_None:
        return write_byte(w, 0xFF)
    return write_byte(w, 1) and write(w, value, version)


cdef bint write_nullable_tagged_struct(Writer* w, PyObject* value, int version, WriteStruct write) noexcept:
    if value == Py_None:
        return write_byte(w, 0)
    return write_byte(w, 1) and write(w, value, version)


# Tagged fields. A section starts with a byte for its count, a field with a byte for its size; both are filled in later.

cdef inline Py_ssize_t open_tags(Writer* w) noexcept:
    cdef Py_ssize_t here = w.at - w.start
    return here if write_byte(w, 0) else -1


cdef bint close_tags(Writer* w, Py_ssize_t opened, PyObject* unknown, int known, int highest) noexcept:
    # Unknown tags are above the highest known one.
    cdef PyObject** pairs
    cdef Py_ssize_t count, index
    cdef int64_t tag, previous = highest
    cdef PyObject** pair
    cdef PyObject* raw
    if unknown == NULL or not PyTuple_CheckExact(unknown):
        return False
    pairs = (<PyTupleObject*> unknown).ob_item
    count = PyTuple_GET_SIZE(unknown)
    if known + count > 127:
        return False
    for index in range(count):
        if not PyTuple_CheckExact(pairs[index]) or PyTuple_GET_SIZE(pairs[index]) != 2:
            return False
        pair = (<PyTupleObject*> pairs[index]).ob_item
        raw = pair[1]
        if not integer(pair[0], previous + 1, 0x7FFFFFFE, &tag) or not PyBytes_Check(raw):
            return False
        if PyBytes_GET_SIZE(raw) >= 0x7FFFFFFF:
            return False
        if not write_uvarint(w, <uint32_t> tag) or not write_uvarint(w, <uint32_t> PyBytes_GET_SIZE(raw)):
            return False
        if not room(w, PyBytes_GET_SIZE(raw)):
            return False
        memcpy(w.at, PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw))
        w.at += PyBytes_GET_SIZE(raw)
        previous = tag
    w.start[opened] = <char> (known + count)
    return True


cdef Py_ssize_t open_tag(Writer* w, uint32_t tag) noexcept:
    cdef Py_ssize_t here
    if not write_uvarint(w, tag):
        return -1
    w.nested += 1
    here = w.at - w.start
    return here if write_byte(w, 0) else -1


cdef bint close_tag(Writer* w, Py_ssize_t opened) noexcept:
    cdef size_t size = w.at - w.start - opened - 1
    cdef size_t more = 0
    cdef size_t rest = size >> 7
    cdef char* at
    w.nested -= 1
    while rest:
        more += 1
        rest >>= 7
    if more:
        if size > 0x7FFFFFFF or not room(w, more):
            return False
        memmove(w.start + opened + 1 + more, w.start + opened + 1, size)
        w.at += more
    at = w.start + opened
    while size >= 0x80:
        at[0] = <char> (size & 0x7F | 0x80)
        at += 1
        size >>= 7
    at[0] = <char> size
    return True


# Whether a quick check shows that a field holds its default. Otherwise the answer is no: the field is then
# written, and a wrong type is noticed.

cdef inline bint is_integer(PyObject* value, int64_t default) noexcept:
    cdef int64_t number
    return integer(value, default, default, &number)


cdef inline bint is_object(PyObject* value, PyObject* default) noexcept:
    return value == default


cdef bint is_float(PyObject* value, double default) noexcept:
    return value != NULL and PyFloat_Check(value) and PyFloat_AS_DOUBLE(value) == default


cdef inline bint is_string(PyObject* value, PyObject* default) noexcept:
    if value == default:
        return True
    return value != NULL and PyUnicode_CheckExact(value) and PyUnicode_Compare(value, default) == 0


cdef inline bint is_bytes(PyObject* value, PyObject* default) noexcept:
    if value == default:
        return True
    if value == NULL or not PyBytes_Check(value) or PyBytes_GET_SIZE(value) != PyBytes_GET_SIZE(default):
        return False
    return memcmp(PyBytes_AS_STRING(value), PyBytes_AS_STRING(default), PyBytes_GET_SIZE(default)) == 0


cdef inline bint is_empty(PyObject* value) noexcept:
    cdef PyObject** items
    cdef Py_ssize_t count
    return elements(value, &items, &count) and count == 0


cdef inline bint is_empty_list(PyObject* value) noexcept:
    return value != NULL and PyList_CheckExact(value) and PyList_GET_SIZE(value) == 0

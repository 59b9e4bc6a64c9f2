# Reading. Every function takes the position to read (p) and the end of the data, never reads past it, and returns the
# position after the value, or NULL: for wrong or unusual input, and for lack of memory. The value is stored in a slot
# that the caller owns, so that a failure needs no cleanup on the way.

cdef enum:
    MAX_STRING_BYTES = 32767
    MAX_ARRAY_LENGTH = 1000000
    MAX_TAGGED_FIELDS = 10000
    SMALLEST = -5  # CPython's own range of cached integers
    LARGEST = 256

ctypedef const uint8_t* Bytes
ctypedef Bytes (*ReadStruct)(PyObject** slot, Bytes p, Bytes end, int version) noexcept
ctypedef bint (*GetNumber)(PyObject** slot, Bytes p) noexcept

cdef PyObject* SMALL_INTEGERS[LARGEST - SMALLEST + 1]
cdef PyObject* EMPTY_TUPLE = PyTuple_New(0)
cdef PyTypeObject* UUID_TYPE
cdef PyObject* ZERO_UUID

for _number in range(SMALLEST, LARGEST + 1):
    SMALL_INTEGERS[_number - SMALLEST] = PyLong_FromLong(_number)


cdef inline void put(PyObject** slot, PyObject* value) noexcept:
    Py_INCREF(value)
    slot[0] = value


cdef inline void drop(PyObject** slot) noexcept:
    # If a tagged field comes twice, the last one counts.
    cdef PyObject* old = slot[0]
    slot[0] = NULL
    Py_XDECREF(old)


cdef inline PyObject** new_struct(PyObject** slot, PyTypeObject* type, size_t fields) noexcept:
    # An instance whose fields are all unset; they start directly after the object's head.
    cdef PyObject* made = <PyObject*> PyObject_Malloc(sizeof(PyObject) + fields * sizeof(void*))
    if made == NULL:
        return NULL
    cdef PyObject** at = <PyObject**> (made + 1)
    memset(at, 0, fields * sizeof(void*))
    slot[0] = PyObject_Init(made, type)
    return at


# Numbers; the caller has checked that the data holds their bytes.

cdef inline uint16_t load16(Bytes p) noexcept:
    return <uint16_t> ((p[0] << 8) | p[1])


cdef inline uint32_t load32(Bytes p) noexcept:
    return (<uint32_t> p[0] << 24) | (<uint32_t> p[1] << 16) | (<uint32_t> p[2] << 8) | p[3]


cdef inline uint64_t load64(Bytes p) noexcept:
    return (<uint64_t> load32(p) << 32) | load32(p + 4)


cdef inline bint set_integer(PyObject** slot, int64_t value) noexcept:
    if SMALLEST <= value <= LARGEST:
        put(slot, SMALL_INTEGERS[value - SMALLEST])
        return True
    slot[0] = PyLong_FromLongLong(value)
    return slot[0] != NULL


cdef inline bint get_bool(PyObject** slot, Bytes p) noexcept:
    put(slot, Py_True if p[0] else Py_False)
    return True


cdef inline bint get_int8(PyObject** slot, Bytes p) noexcept:
    return set_integer(slot, <int8_t> p[0])


cdef inline bint get_int16(PyObject** slot, Bytes p) noexcept:
    return set_integer(slot, <int16_t> load16(p))


cdef inline bint get_uint16(PyObject** slot, Bytes p) noexcept:
    return set_integer(slot, load16(p))


cdef inline bint get_int32(PyObject** slot, Bytes p) noexcept:
    return set_integer(slot, <int32_t> load32(p))


cdef inline bint get_uint32(PyObject** slot, Bytes p) noexcept:
    return set_integer(slot, load32(p))


cdef inline bint get_int64(PyObject** slot, Bytes p) noexcept:
    return set_integer(slot, <int64_t> load64(p))


cdef inline bint get_float64(PyObject** slot, Bytes p) noexcept:
    cdef uint64_t bits = load64(p)
    cdef double value
    memcpy(&value, &bits, sizeof(value))
    slot[0] = PyFloat_FromDouble(value)
    return slot[0] != NULL


cdef bint get_uuid(PyObject** slot, Bytes p) noexcept:
    cdef PyObject* made
    if load64(p) == 0 and load64(p + 8) == 0:
        put(slot, ZERO_UUID)
        return True
    made = PyType_GenericAlloc(UUID_TYPE, 16)
    if made == NULL:
        return False
    # CPython tracks it as an instance of a Python class; it holds no object that could refer back to it.
    PyObject_GC_UnTrack(made)
    kw_forget_hash(made)
    memcpy(PyBytes_AS_STRING(made), p, 16)
    slot[0] = made
    return True


# Sizes.

cdef Bytes long_uvarint(Bytes p, Bytes end, uint32_t* value) noexcept:
    # More bytes than necessary are legal; bits above the 32nd are dropped, as in Java.
    cdef uint32_t found = 0
    cdef int shift
    for shift in range(0, 35, 7):
        if p >= end:
            return NULL
        found |= <uint32_t> (p[0] & 0x7F) << shift
        if p[0] < 0x80:
            value[0] = found
            return p + 1
        p += 1
    return NULL


cdef inline Bytes uvarint(Bytes p, Bytes end, uint32_t* value) noexcept:
    if p < end and p[0] < 0x80:
        value[0] = p[0]
        return p + 1
    return long_uvarint(p, end, value)


cdef inline Bytes compact_size(Bytes p, Bytes end, int64_t* size) noexcept:
    cdef uint32_t plus_one
    p = uvarint(p, end, &plus_one)
    if p == NULL or plus_one > 0x7FFFFFFF:
        return NULL
    size[0] = <int64_t> plus_one - 1
    return p


cdef inline Bytes size_of_two_bytes(Bytes p, Bytes end, int64_t* size) noexcept:
    if end - p < 2:
        return NULL
    size[0] = <int16_t> load16(p)
    return p + 2


cdef inline Bytes size_of_four_bytes(Bytes p, Bytes end, int64_t* size) noexcept:
    if end - p < 4:
        return NULL
    size[0] = <int32_t> load32(p)
    return p + 4


cdef inline Bytes array_size(Bytes p, Bytes end, bint compact, int64_t* count) noexcept:
    # Every element takes at least a byte, so memory is only allocated for as many as the data can hold.
    p = compact_size(p, end, count) if compact else size_of_four_bytes(p, end, count)
    if p == NULL or count[0] > end - p or count[0] > MAX_ARRAY_LENGTH:
        return NULL
    return p


cdef inline Bytes read_null(PyObject** slot, Bytes p, bint nullable) noexcept:
    if not nullable:
        return NULL
    put(slot, Py_None)
    return p


# Strings and bytes.

cdef inline Bytes set_string(PyObject** slot, Bytes p, Bytes end, int64_t size) noexcept:
    if size > end - p or size > MAX_STRING_BYTES:
        return NULL
    # Malformed text is legal, and left to the careful decoder, which replaces the malformed parts.
    slot[0] = PyUnicode_DecodeUTF8(<const char*> p, size, NULL)
    return NULL if slot[0] == NULL else p + size


cdef inline Bytes set_bytes(PyObject** slot, Bytes p, Bytes end, int64_t size) noexcept:
    if size > end - p:
        return NULL
    slot[0] = PyBytes_FromStringAndSize(<const char*> p, size)
    return NULL if slot[0] == NULL else p + size


cdef Bytes read_string(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    cdef int64_t size
    p = compact_size(p, end, &size) if compact else size_of_two_bytes(p, end, &size)
    if p == NULL:
        return NULL
    return read_null(slot, p, nullable) if size < 0 else set_string(slot, p, end, size)


cdef Bytes read_bytes(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    cdef int64_t size
    p = compact_size(p, end, &size) if compact else size_of_four_bytes(p, end, &size)
    if p == NULL:
        return NULL
    return read_null(slot, p, nullable) if size < 0 else set_bytes(slot, p, end, size)


# Arrays.

cdef inline PyObject** new_tuple(PyObject** slot, int64_t count) noexcept:
    # Hidden from the garbage collector: it is not complete yet, and will hold no object that could refer back to it.
    slot[0] = PyTuple_New(count)
    if slot[0] == NULL:
        return NULL
    PyObject_GC_UnTrack(slot[0])
    return (<PyTupleObject*> slot[0]).ob_item


cdef inline Bytes read_numbers(
    PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable, GetNumber get, int width
) noexcept:
    cdef int64_t count, index
    cdef PyObject** items
    p = array_size(p, end, compact, &count)
    if p == NULL:
        return NULL
    if count <= 0:
        return read_null(slot, p, nullable) if count < 0 else read_nothing(slot, p)
    if count * width > end - p:
        return NULL
    items = new_tuple(slot, count)
    if items == NULL:
        return NULL
    for index in range(count):
        if not get(items + index, p):
            return NULL
        p += width
    return p


cdef inline Bytes read_nothing(PyObject** slot, Bytes p) noexcept:
    put(slot, EMPTY_TUPLE)
    return p


cdef Bytes read_int8s(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    return read_numbers(slot, p, end, compact, nullable, get_int8, 1)


cdef Bytes read_int16s(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    return read_numbers(slot, p, end, compact, nullable, get_int16, 2)


cdef Bytes read_int32s(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    return read_numbers(slot, p, end, compact, nullable, get_int32, 4)


cdef Bytes read_int64s(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    return read_numbers(slot, p, end, compact, nullable, get_int64, 8)


cdef Bytes read_uint16s(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    return read_numbers(slot, p, end, compact, nullable, get_uint16, 2)


cdef Bytes read_uint32s(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    return read_numbers(slot, p, end, compact, nullable, get_uint32, 4)


cdef Bytes read_float64s(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    return read_numbers(slot, p, end, compact, nullable, get_float64, 8)


cdef Bytes read_bools(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    return read_numbers(slot, p, end, compact, nullable, get_bool, 1)


cdef Bytes read_uuids(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    return read_numbers(slot, p, end, compact, nullable, get_uuid, 16)


cdef inline bint repeats(Bytes before, Bytes p, Bytes end, PyObject* same) noexcept:
    # Whether the bytes from ``before`` to here, which are those of the tuple ``same``, are repeated. In-sync replicas
    # are mostly all replicas, and then share their tuple.
    cdef Py_ssize_t size = p - before
    return end - p >= size and same != Py_None and memcmp(before, p, size) == 0


cdef Bytes read_strings(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    cdef int64_t count, index
    cdef PyObject** items
    p = array_size(p, end, compact, &count)
    if p == NULL:
        return NULL
    if count <= 0:
        return read_null(slot, p, nullable) if count < 0 else read_nothing(slot, p)
    items = new_tuple(slot, count)
    if items == NULL:
        return NULL
    for index in range(count):
        p = read_string(items + index, p, end, compact, False)
        if p == NULL:
            return NULL
    return p


cdef Bytes read_byte_strings(PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable) noexcept:
    cdef int64_t count, index
    cdef PyObject** items
    p = array_size(p, end, compact, &count)
    if p == NULL:
        return NULL
    if count <= 0:
        return read_null(slot, p, nullable) if count < 0 else read_nothing(slot, p)
    items = new_tuple(slot, count)
    if items == NULL:
        return NULL
    for index in range(count):
        p = read_bytes(items + index, p, end, compact, False)
        if p == NULL:
            return NULL
    return p


cdef Bytes read_structs(
    PyObject** slot, Bytes p, Bytes end, bint compact, bint nullable, int version, ReadStruct read
) noexcept:
    cdef int64_t count, index
    cdef PyObject** items
    p = array_size(p, end, compact, &count)
    if p == NULL:
        return NULL
    if count < 0:
        return read_null(slot, p, nullable)
    slot[0] = PyList_New(count)
    if slot[0] == NULL:
        return NULL
    # No code may see a list with holes, even if a garbage collection runs meanwhile.
    PyObject_GC_UnTrack(slot[0])
    items = (<PyListObject*> slot[0]).ob_item
    for index in range(count):
        p = read(items + index, p, end, version)
        if p == NULL:
            return NULL
    PyObject_GC_Track(slot[0])
    return p


# Structs that may be null.

cdef Bytes read_nullable_struct(PyObject** slot, Bytes p, Bytes end, int version, ReadStruct read) noexcept:
    if p >= end:
        return NULL
    if p[0] >= 0x80:
        return read_null(slot, p + 1, True)
    return read(slot, p + 1, end, version)


cdef Bytes read_nullable_tagged_struct(PyObject** slot, Bytes p, Bytes end, int version, ReadStruct read) noexcept:
    cdef uint32_t present
    p = uvarint(p, end, &present)
    if p == NULL:
        return NULL
    if present == 0 or present > 0x7FFFFFFF:
        return read_null(slot, p, True)
    return read(slot, p, end, version)


# Tagged fields.

cdef Bytes tag_count(Bytes p, Bytes end, uint32_t* count) noexcept:
    p = uvarint(p, end, count)
    if p == NULL or count[0] > MAX_TAGGED_FIELDS or count[0] > end - p:
        return NULL
    return p


cdef inline Bytes tag_and_size(Bytes p, Bytes end, uint32_t* tag, uint32_t* size) noexcept:
    p = uvarint(p, end, tag)
    if p == NULL or tag[0] > 0x7FFFFFFF:
        return NULL
    return uvarint(p, end, size)


cdef Bytes keep_unknown_tag(PyObject** slot, Bytes p, Bytes end, uint32_t tag, uint32_t size) noexcept:
    # They are collected in a list that is in the slot until the section ends.
    cdef PyObject* pair
    cdef PyObject** items
    cdef int failed
    if size > end - p:
        return NULL
    if slot[0] == NULL:
        slot[0] = PyList_New(0)
        if slot[0] == NULL:
            return NULL
        PyObject_GC_UnTrack(slot[0])
    items = new_tuple(&pair, 2)
    if items == NULL:
        return NULL
    failed = -1
    if set_integer(items, tag) and set_bytes(items + 1, p, end, size) != NULL:
        failed = PyList_Append(slot[0], pair)
    Py_DECREF(pair)
    return NULL if failed else p + size


cdef Bytes end_of_tags(PyObject** slot, Bytes p) noexcept:
    cdef PyObject* gathered = slot[0]
    if gathered == NULL:
        put(slot, EMPTY_TUPLE)
        return p
    slot[0] = PyList_AsTuple(gathered)
    Py_DECREF(gathered)
    return NULL if slot[0] == NULL else p


cdef Bytes read_unknown_tags(PyObject** slot, Bytes p, Bytes end) noexcept:
    # The section of a struct without known tags.
    cdef uint32_t count, tag, size
    p = tag_count(p, end, &count)
    if p == NULL:
        return NULL
    while count:
        count -= 1
        p = tag_and_size(p, end, &tag, &size)
        if p == NULL:
            return NULL
        p = keep_unknown_tag(slot, p, end, tag, size)
        if p == NULL:
            return NULL
    return end_of_tags(slot, p)

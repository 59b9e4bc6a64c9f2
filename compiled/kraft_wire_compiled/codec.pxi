# Install compiled methods in generated classes, and parse the arguments of their calls.

import sys

from kraft_wire.protocol.schema import Structure
from kraft_wire.protocol.uuid import Uuid

cdef Py_ssize_t HEAD_BYTES = sizeof(PyObject)
cdef Py_ssize_t SLOT_BYTES = sizeof(void*)

cdef struct Shape:
    # A generated class. The fields are in the order of their names, because CPython sorts slots.
    PyTypeObject* type
    PyObject** defaults

cdef struct Codec:
    # A message. The methods of the Python codec are kept for the cases that the compiled one leaves to it.
    int lowest_version
    int highest_version
    bint has_bytes
    ReadStruct read
    WriteStruct write
    PyObject* decode
    PyObject* decode_from
    PyObject* encode
    PyObject* encode_into
    PyMethodDef methods[4]

ctypedef PyObject* (*Method)(PyObject*, PyObject**, Py_ssize_t, PyObject*) noexcept


# Layout.

cdef bint is_plain(PyTypeObject* type, Py_ssize_t size, Py_ssize_t item_size) noexcept:
    # Whether instances hold exactly the fields of the class, and are allocated in CPython's default way.
    return (
        type.tp_basicsize == size
        and type.tp_itemsize == item_size
        and type.tp_dictoffset == 0
        and type.tp_weaklistoffset == 0
        and type.tp_alloc == <void*> PyType_GenericAlloc
    )


cdef bint is_outside_gc(PyTypeObject* type) noexcept:
    return not type.tp_flags & Py_TPFLAGS_HAVE_GC and type.tp_free == <void*> PyObject_Free


cdef void keep(PyObject** slot, method):
    Py_XDECREF(slot[0])
    put(slot, <PyObject*> method)


cdef bint is_laid_out(str module, str name, str fields) except -1:
    """Whether a generated class has the layout that the compiled code assumes; ``fields`` are its fields, sorted."""
    cls = getattr(sys.modules[module], name)
    cdef PyTypeObject* type = <PyTypeObject*> cls
    cdef list names = fields.split()
    cdef Py_ssize_t number
    if not issubclass(cls, Structure) or sorted(cls.__struct_fields__) != names:
        return False
    if not is_plain(type, HEAD_BYTES + len(names) * SLOT_BYTES, 0) or not is_outside_gc(type):
        return False
    for number, field in enumerate(names):
        descriptor = cls.__dict__.get(field)
        if kw_member_offset(<PyObject*> descriptor, type) != HEAD_BYTES + number * SLOT_BYTES:
            return False
    return True


cdef int lay_out(Shape* shape, str module, str name) except -1:
    """Register such a class and its defaults, in the order of its fields' names."""
    cls = getattr(sys.modules[module], name)
    cdef Py_ssize_t number
    defaults = dict(zip(cls.__struct_fields__, cls.__struct_defaults__, strict=True))
    if shape.defaults == NULL:
        # Never freed: it is as constant as the class's name. It is empty for a struct without fields.
        shape.defaults = <PyObject**> PyObject_Malloc((len(defaults) + 1) * sizeof(void*))
        if shape.defaults == NULL:
            raise MemoryError
        memset(shape.defaults, 0, (len(defaults) + 1) * sizeof(void*))
    for number, field in enumerate(sorted(defaults)):
        keep(&shape.defaults[number], defaults[field])
    keep(<PyObject**> &shape.type, cls)


cdef bint lay_out_uuid() except -1:
    global UUID_TYPE, ZERO_UUID
    zero = Uuid.ZERO
    UUID_TYPE = <PyTypeObject*> Uuid
    ZERO_UUID = <PyObject*> zero
    Py_INCREF(ZERO_UUID)
    return is_plain(UUID_TYPE, PyBytes_Type.tp_basicsize, PyBytes_Type.tp_itemsize)


cdef bint UUID_FITS = lay_out_uuid()


cdef void define(PyMethodDef* method, const char* name, Method function, const char* doc) noexcept:
    method.ml_name = name
    method.ml_meth = <void*> function
    method.ml_flags = METH_FASTCALL | METH_KEYWORDS
    method.ml_doc = doc


cdef bint take_over(Codec* codec, cls, Method decode, Method decode_from, Method encode, Method encode_into) except -1:
    """Put compiled methods into a class, and keep the earlier ones."""
    keep(&codec.decode, cls.decode)
    keep(&codec.decode_from, cls.decode_from)
    keep(&codec.encode, cls.encode)
    keep(&codec.encode_into, cls.encode_into)
    define(&codec.methods[0], "decode", decode, DECODE_DOC)
    define(&codec.methods[1], "decode_from", decode_from, DECODE_FROM_DOC)
    define(&codec.methods[2], "encode", encode, ENCODE_DOC)
    define(&codec.methods[3], "encode_into", encode_into, ENCODE_INTO_DOC)
    # A method without an instance becomes a function, so that a call need not bind the class first.
    cls.decode = kw_function(&codec.methods[0])
    cls.decode_from = kw_function(&codec.methods[1])
    cls.encode = kw_method(<PyTypeObject*> cls, &codec.methods[2])
    cls.encode_into = kw_method(<PyTypeObject*> cls, &codec.methods[3])
    return True


cdef const char* DECODE_DOC = b"""decode(data, version)\n--\n
Read a message from the beginning of data; bytes after it are ignored, as in Java."""
cdef const char* DECODE_FROM_DOC = b"""decode_from(data, version, pos)\n--\n
Read a message that begins at pos; returns it and the position after it."""
cdef const char* ENCODE_DOC = b"""encode($self, version)\n--\n
The message's bytes at this version."""
cdef const char* ENCODE_INTO_DOC = b"""encode_into($self, out, version)\n--\n
Append the message's bytes, in pieces, to out; after an exception out is as it was."""


# Calls.

cdef bint only(PyObject* names, const char* name) noexcept:
    # Whether a call has named only this argument, which is then the last, or none.
    if names == NULL:
        return True
    return PyTuple_GET_SIZE(names) == 1 and PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), name) == 0


cdef inline Py_ssize_t arguments(Py_ssize_t count, PyObject* names) noexcept:
    return count if names == NULL else count + PyTuple_GET_SIZE(names)


cdef inline bint take_version(Codec* codec, PyObject* value, int* version) noexcept:
    cdef int64_t number
    if not PyLong_CheckExact(value) or not integer(value, codec.lowest_version, codec.highest_version, &number):
        return False
    version[0] = <int> number
    return True


cdef Bytes read_message(Codec* codec, PyObject** slot, PyObject* data, Py_ssize_t pos, int version) noexcept:
    # On NULL nothing remains allocated.
    cdef Bytes start = <Bytes> PyBytes_AS_STRING(data)
    cdef Bytes end
    slot[0] = NULL
    end = codec.read(slot, start + pos, start + PyBytes_GET_SIZE(data), version)
    if end == NULL:
        Py_XDECREF(slot[0])
        PyErr_Clear()
    return end


cdef PyObject* decode(Codec* codec, PyObject** args, Py_ssize_t count, PyObject* names) noexcept:
    cdef PyObject* made
    cdef int version
    if (
        arguments(count, names) == 2
        and only(names, "version")
        and PyBytes_CheckExact(args[0])
        and take_version(codec, args[1], &version)
        and read_message(codec, &made, args[0], 0, version) != NULL
    ):
        return made
    return PyObject_Vectorcall(codec.decode, args, count, names)


cdef PyObject* decode_from(Codec* codec, PyObject** args, Py_ssize_t count, PyObject* names) noexcept:
    cdef PyObject* made
    cdef PyObject* position
    cdef PyObject* pair
    cdef Bytes end
    cdef int64_t pos
    cdef int version
    if (
        arguments(count, names) != 3
        or not only(names, "pos")
        or not PyBytes_CheckExact(args[0])
        or not take_version(codec, args[1], &version)
        or not integer(args[2], 0, PyBytes_GET_SIZE(args[0]), &pos)
    ):
        return PyObject_Vectorcall(codec.decode_from, args, count, names)
    end = read_message(codec, &made, args[0], pos, version)
    if end == NULL:
        return PyObject_Vectorcall(codec.decode_from, args, count, names)
    position = PyLong_FromLongLong(end - <Bytes> PyBytes_AS_STRING(args[0]))
    if position == NULL:
        Py_DECREF(made)
        return NULL
    pair = PyTuple_Pack(2, made, position)
    Py_DECREF(made)
    Py_DECREF(position)
    return pair


cdef PyObject* call_python(PyObject* function, PyObject* self, PyObject** args, Py_ssize_t count, PyObject* names) noexcept:
    cdef PyObject* all_args[4]
    cdef Py_ssize_t total = arguments(count, names)
    PyErr_Clear()
    if total > 3:
        # Too many arguments for either method; the first ones are enough for the error.
        total, count, names = 3, 3, NULL
    all_args[0] = self
    memcpy(all_args + 1, args, total * sizeof(void*))
    return PyObject_Vectorcall(function, all_args, count + 1, names)


cdef PyObject* encode(Codec* codec, PyObject* self, PyObject** args, Py_ssize_t count, PyObject* names) noexcept:
    cdef char stack[STACK_BYTES]
    cdef Writer w
    cdef int version
    if arguments(count, names) == 1 and only(names, "version") and take_version(codec, args[0], &version):
        start_writing(&w, stack)
        if codec.write(&w, self, version):
            return written(&w)
        abandon(&w)
    return call_python(codec.encode, self, args, count, names)


cdef PyObject* encode_into(Codec* codec, PyObject* self, PyObject** args, Py_ssize_t count, PyObject* names) noexcept:
    cdef char stack[STACK_BYTES]
    cdef Writer w
    cdef int version
    if (
        arguments(count, names) == 2
        and only(names, "version")
        and PyList_CheckExact(args[0])
        and take_version(codec, args[1], &version)
    ):
        start_writing(&w, stack)
        if codec.has_bytes:
            w.pieces = PyList_New(0)
        if codec.write(&w, self, version):
            return append(&w, args[0])
        abandon(&w)
    return call_python(codec.encode_into, self, args, count, names)


cdef PyObject* append(Writer* w, PyObject* out) noexcept:
    # Append all pieces or none.
    cdef PyObject* last = written(w)
    cdef PyObject* pieces = w.pieces
    cdef int failed = -1
    if last != NULL:
        if pieces == NULL or PyList_GET_SIZE(pieces) == 0:
            failed = PyList_Append(out, last)
        elif PyList_Append(pieces, last) == 0:
            failed = PyList_SetSlice(out, PyList_GET_SIZE(out), PyList_GET_SIZE(out), pieces)
        Py_DECREF(last)
    Py_XDECREF(pieces)
    if failed:
        return NULL
    Py_INCREF(Py_None)
    return Py_None

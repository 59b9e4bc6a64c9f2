# CPython's own functions with plain pointers: reference counts are kept by hand, and NULL means no object.

from libc.math cimport NAN
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memmove, memset

cdef extern from *:
    int64_t INT64_MIN
    int64_t INT64_MAX
    Py_ssize_t PY_SSIZE_T_MAX

cdef extern from "Python.h":
    ctypedef struct PyObject:
        Py_ssize_t ob_refcnt
    ctypedef struct PyTypeObject:
        Py_ssize_t tp_basicsize
        Py_ssize_t tp_itemsize
        Py_ssize_t tp_dictoffset
        Py_ssize_t tp_weaklistoffset
        void* tp_alloc
        void* tp_free
        unsigned long tp_flags
    ctypedef struct PyTupleObject:
        PyObject* ob_item[1]
    ctypedef struct PyListObject:
        PyObject** ob_item
    ctypedef struct PyMethodDef:
        const char* ml_name
        void* ml_meth
        int ml_flags
        const char* ml_doc

    PyObject* Py_None
    PyObject* Py_True
    PyObject* Py_False
    PyTypeObject PyBytes_Type
    unsigned long Py_TPFLAGS_HAVE_GC
    int METH_FASTCALL
    int METH_KEYWORDS

    void Py_INCREF(PyObject*)
    void Py_DECREF(PyObject*)
    void Py_XDECREF(PyObject*)
    PyTypeObject* Py_TYPE(PyObject*)

    void* PyObject_Malloc(size_t)
    void PyObject_Free(void*)
    PyObject* PyObject_Init(PyObject*, PyTypeObject*)
    PyObject* PyType_GenericAlloc(PyTypeObject*, Py_ssize_t)
    void PyObject_GC_Track(PyObject*)
    void PyObject_GC_UnTrack(PyObject*)
    PyObject* PyObject_CallNoArgs(PyObject*)
    PyObject* PyObject_Vectorcall(PyObject*, PyObject**, size_t, PyObject*)
    PyObject* PyErr_NoMemory()
    void PyErr_Clear()

    bint PyLong_Check(PyObject*)
    bint PyLong_CheckExact(PyObject*)
    PyObject* PyLong_FromLong(long)
    PyObject* PyLong_FromLongLong(long long)
    long long PyLong_AsLongLongAndOverflow(PyObject*, int*)
    bint PyFloat_Check(PyObject*)
    PyObject* PyFloat_FromDouble(double)
    double PyFloat_AS_DOUBLE(PyObject*)

    bint PyUnicode_CheckExact(PyObject*)
    bint PyUnicode_IS_COMPACT_ASCII(PyObject*)
    void* PyUnicode_DATA(PyObject*)
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject*)
    PyObject* PyUnicode_DecodeUTF8(const char*, Py_ssize_t, const char*)
    PyObject* PyUnicode_AsUTF8String(PyObject*)
    int PyUnicode_Compare(PyObject*, PyObject*)
    int PyUnicode_CompareWithASCIIString(PyObject*, const char*)

    bint PyBytes_Check(PyObject*)
    bint PyBytes_CheckExact(PyObject*)
    char* PyBytes_AS_STRING(PyObject*)
    Py_ssize_t PyBytes_GET_SIZE(PyObject*)
    PyObject* PyBytes_FromStringAndSize(const char*, Py_ssize_t)
    int _PyBytes_Resize(PyObject**, Py_ssize_t)

    bint PyTuple_CheckExact(PyObject*)
    PyObject* PyTuple_New(Py_ssize_t)
    PyObject* PyTuple_Pack(Py_ssize_t, ...)
    Py_ssize_t PyTuple_GET_SIZE(PyObject*)
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t)
    bint PyList_CheckExact(PyObject*)
    PyObject* PyList_New(Py_ssize_t)
    Py_ssize_t PyList_GET_SIZE(PyObject*)
    int PyList_Append(PyObject*, PyObject*)
    int PyList_SetSlice(PyObject*, Py_ssize_t, Py_ssize_t, PyObject*)
    PyObject* PyList_AsTuple(PyObject*)

cdef extern from *:
    """
    #include <structmember.h>
    typedef struct { PyDescr_COMMON; struct PyMemberDef *d_member; } kw_member_descriptor;
    /* A bytes object whose hash is not known yet; the field in front of the bytes warns where it is named. */
    static void kw_forget_hash(PyObject *o) {
        memset((char *)o + offsetof(PyBytesObject, ob_sval) - sizeof(Py_hash_t), 0xff, sizeof(Py_hash_t));
    }
    static Py_ssize_t kw_member_offset(PyObject *descriptor, PyTypeObject *owner) {
        kw_member_descriptor *found = (kw_member_descriptor *)descriptor;
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type) || found->d_common.d_type != owner) return -1;
        return found->d_member->type == T_OBJECT_EX ? found->d_member->offset : -1;
    }
    static PyObject *kw_method(PyTypeObject *type, PyMethodDef *method) { return PyDescr_NewMethod(type, method); }
    static PyObject *kw_function(PyMethodDef *method) { return PyCFunction_NewEx(method, NULL, NULL); }
    """
    void kw_forget_hash(PyObject*)
    Py_ssize_t kw_member_offset(PyObject* descriptor, PyTypeObject* owner)
    object kw_method(PyTypeObject* type, PyMethodDef* method)
    object kw_function(PyMethodDef* method)

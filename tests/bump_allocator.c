/* An allocator to preload: it takes every piece from one mapping and gives none back.

   Whoever frees such a piece by the C library's own free() ends the process, as beside jemalloc. */

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define MOST (1UL << 36) /* bytes; only those that are used take memory */
#define LEAST 16

static _Atomic(char *) arena;
static _Atomic size_t used;

static char *mapped(void) {
    char *own = atomic_load(&arena), *none = NULL;
    if (own) return own;
    own = mmap(0, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return atomic_compare_exchange_strong(&arena, &none, own) ? own : none;
}

/* The size stands before each piece. */
static void *piece(size_t align, size_t size) {
    if (align < LEAST) align = LEAST;
    size_t at = (size_t)mapped() + atomic_fetch_add(&used, size + align + LEAST) + LEAST;
    size_t *start = (size_t *)((at + align - 1) & ~(align - 1));
    start[-1] = size;
    return start;
}

size_t malloc_usable_size(void *old) { return old ? ((size_t *)old)[-1] : 0; }
void free(void *old) { (void)old; }
void *malloc(size_t size) { return piece(LEAST, size); }
void *calloc(size_t count, size_t size) { return piece(LEAST, count * size); }
void *memalign(size_t align, size_t size) { return piece(align, size); }
void *aligned_alloc(size_t align, size_t size) { return piece(align, size); }

int posix_memalign(void **made, size_t align, size_t size) {
    *made = piece(align, size);
    return 0;
}

void *realloc(void *old, size_t size) {
    size_t had = malloc_usable_size(old);
    void *made = piece(LEAST, size);
    return old ? memcpy(made, old, had < size ? had : size) : made;
}

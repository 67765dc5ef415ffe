//go:build amd64 && !race

#include "textflag.h"

// func addOwned(v *atomic.Uint64, n uint64)
TEXT ·addOwned(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ v+0(FP), AX
	MOVQ n+8(FP), BX
	ADDQ BX, (AX)
	RET

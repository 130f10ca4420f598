#!/bin/bash
#flux: -N 2
#flux: --exclusive
flux run -N 2 -n 8 -g 1 -c 24 python -u train.py
# expected: DT011

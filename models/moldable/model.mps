* edgeflow-opt 0.1.0: formulation moldable, level 1, minimise -(met)
* names: module edgeflow_opt.formulations.names; 'edgeflow import' reads solutions back
NAME        edgeflow_moldable
ROWS
 N  Obj     
 L  one_run(a)
 E  one_run(b)
 L  one_run(c)
 L  one_run(d)
 L  one_run(e)
 L  one_run(f)
 L  capacity(cloud,0)
 L  capacity(cloud,1)
 L  capacity(cloud,2)
 L  capacity(cloud,3)
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    y(a,cloud,1,0)  Obj       -2
    y(a,cloud,1,0)  one_run(a)  1
    y(a,cloud,1,0)  capacity(cloud,0)  1
    y(a,cloud,1,0)  capacity(cloud,1)  1
    y(a,cloud,2,0)  Obj       -2
    y(a,cloud,2,0)  one_run(a)  1
    y(a,cloud,2,0)  capacity(cloud,0)  2
    y(a,cloud,2,1)  Obj       -2
    y(a,cloud,2,1)  one_run(a)  1
    y(a,cloud,2,1)  capacity(cloud,1)  2
    y(b,cloud,2,0)  Obj       -3
    y(b,cloud,2,0)  one_run(b)  1
    y(b,cloud,2,0)  capacity(cloud,0)  2
    y(b,cloud,2,0)  capacity(cloud,1)  2
    y(b,cloud,2,0)  capacity(cloud,2)  2
    y(c,cloud,1,0)  Obj       -4
    y(c,cloud,1,0)  one_run(c)  1
    y(c,cloud,1,0)  capacity(cloud,0)  1
    y(c,cloud,1,0)  capacity(cloud,1)  1
    y(c,cloud,1,0)  capacity(cloud,2)  1
    y(c,cloud,1,0)  capacity(cloud,3)  1
    y(c,cloud,2,0)  Obj       -4
    y(c,cloud,2,0)  one_run(c)  1
    y(c,cloud,2,0)  capacity(cloud,0)  2
    y(c,cloud,2,0)  capacity(cloud,1)  2
    y(c,cloud,2,1)  Obj       -4
    y(c,cloud,2,1)  one_run(c)  1
    y(c,cloud,2,1)  capacity(cloud,1)  2
    y(c,cloud,2,1)  capacity(cloud,2)  2
    y(c,cloud,2,2)  Obj       -4
    y(c,cloud,2,2)  one_run(c)  1
    y(c,cloud,2,2)  capacity(cloud,2)  2
    y(c,cloud,2,2)  capacity(cloud,3)  2
    y(d,cloud,1,1)  Obj       -2
    y(d,cloud,1,1)  one_run(d)  1
    y(d,cloud,1,1)  capacity(cloud,1)  1
    y(d,cloud,1,1)  capacity(cloud,2)  1
    y(d,cloud,2,1)  Obj       -2
    y(d,cloud,2,1)  one_run(d)  1
    y(d,cloud,2,1)  capacity(cloud,1)  2
    y(d,cloud,2,1)  capacity(cloud,2)  2
    y(d,cloud,2,2)  Obj       -2
    y(d,cloud,2,2)  one_run(d)  1
    y(d,cloud,2,2)  capacity(cloud,2)  2
    y(d,cloud,2,2)  capacity(cloud,3)  2
    y(e,cloud,1,0)  Obj       -3
    y(e,cloud,1,0)  one_run(e)  1
    y(e,cloud,1,0)  capacity(cloud,0)  1
    y(e,cloud,1,0)  capacity(cloud,1)  1
    y(e,cloud,1,0)  capacity(cloud,2)  1
    y(e,cloud,1,1)  Obj       -3
    y(e,cloud,1,1)  one_run(e)  1
    y(e,cloud,1,1)  capacity(cloud,1)  1
    y(e,cloud,1,1)  capacity(cloud,2)  1
    y(e,cloud,1,1)  capacity(cloud,3)  1
    y(e,cloud,2,0)  Obj       -3
    y(e,cloud,2,0)  one_run(e)  1
    y(e,cloud,2,0)  capacity(cloud,0)  2
    y(e,cloud,2,0)  capacity(cloud,1)  2
    y(e,cloud,2,1)  Obj       -3
    y(e,cloud,2,1)  one_run(e)  1
    y(e,cloud,2,1)  capacity(cloud,1)  2
    y(e,cloud,2,1)  capacity(cloud,2)  2
    y(e,cloud,2,2)  Obj       -3
    y(e,cloud,2,2)  one_run(e)  1
    y(e,cloud,2,2)  capacity(cloud,2)  2
    y(e,cloud,2,2)  capacity(cloud,3)  2
    y(f,cloud,1,0)  Obj       -1
    y(f,cloud,1,0)  one_run(f)  1
    y(f,cloud,1,0)  capacity(cloud,0)  1
    y(f,cloud,1,0)  capacity(cloud,1)  1
    y(f,cloud,1,0)  capacity(cloud,2)  1
    y(f,cloud,2,0)  Obj       -1
    y(f,cloud,2,0)  one_run(f)  1
    y(f,cloud,2,0)  capacity(cloud,0)  2
    y(f,cloud,2,0)  capacity(cloud,1)  2
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     one_run(a)  1
    RHS_V     one_run(b)  1
    RHS_V     one_run(c)  1
    RHS_V     one_run(d)  1
    RHS_V     one_run(e)  1
    RHS_V     one_run(f)  1
    RHS_V     capacity(cloud,0)  3
    RHS_V     capacity(cloud,1)  3
    RHS_V     capacity(cloud,2)  2
    RHS_V     capacity(cloud,3)  3
BOUNDS
 BV BOUND     y(a,cloud,1,0)
 BV BOUND     y(a,cloud,2,0)
 BV BOUND     y(a,cloud,2,1)
 BV BOUND     y(b,cloud,2,0)
 BV BOUND     y(c,cloud,1,0)
 BV BOUND     y(c,cloud,2,0)
 BV BOUND     y(c,cloud,2,1)
 BV BOUND     y(c,cloud,2,2)
 BV BOUND     y(d,cloud,1,1)
 BV BOUND     y(d,cloud,2,1)
 BV BOUND     y(d,cloud,2,2)
 BV BOUND     y(e,cloud,1,0)
 BV BOUND     y(e,cloud,1,1)
 BV BOUND     y(e,cloud,2,0)
 BV BOUND     y(e,cloud,2,1)
 BV BOUND     y(e,cloud,2,2)
 BV BOUND     y(f,cloud,1,0)
 BV BOUND     y(f,cloud,2,0)
ENDATA

* edgeflow-opt 0.1.0: formulation malleable, level 1, minimise -(met)
* names: module edgeflow_opt.formulations.names; 'edgeflow import' reads solutions back
NAME        edgeflow_malleable
ROWS
 N  Obj     
 L  link(a,0)
 L  link(a,1)
 L  link(b,0)
 L  link(b,1)
 L  link(b,2)
 L  link(d,1)
 L  link(d,2)
 L  link(d,3)
 L  link(f,0)
 L  link(f,1)
 L  link(f,2)
 E  balance(c,1,after.cloud)
 E  balance(c,2,after.cloud)
 E  balance(c,3,after.cloud)
 E  balance(e,0,after.cloud)
 E  balance(e,1,after.cloud)
 E  balance(e,2,after.cloud)
 E  balance(e,3,after.cloud)
 E  balance(c,0,after.edge)
 E  balance(c,1,after.edge)
 E  balance(c,2,after.edge)
 E  balance(c,3,after.edge)
 E  balance(e,1,after.edge)
 E  balance(e,2,after.edge)
 E  balance(e,3,after.edge)
 L  go_on(c,cloud,1,1)
 L  go_on(c,cloud,1,2)
 L  go_on(c,cloud,1,3)
 L  go_on(c,cloud,2,1)
 L  go_on(c,cloud,2,2)
 L  go_on(c,cloud,2,3)
 L  go_on(c,edge,1,1)
 L  go_on(c,edge,1,2)
 L  go_on(e,cloud,1,1)
 L  go_on(e,cloud,1,2)
 L  go_on(e,cloud,1,3)
 L  go_on(e,cloud,2,1)
 L  go_on(e,cloud,2,2)
 L  go_on(e,cloud,2,3)
 L  go_on(e,edge,1,1)
 L  go_on(e,edge,1,2)
 L  capacity(cloud,0)
 L  capacity(cloud,1)
 L  capacity(cloud,2)
 L  capacity(cloud,3)
 L  capacity(edge,0)
 L  capacity(edge,1)
 L  capacity(edge,2)
 G  work(a) 
 G  work(b) 
 G  work(c) 
 G  work(d) 
 G  work(e) 
 G  work(f) 
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    z(a)      Obj       -2
    z(a)      link(a,0)  -1
    z(a)      link(a,1)  -1
    z(a)      work(a)   -699.99929999999995
    z(b)      Obj       -3
    z(b)      link(b,0)  -1
    z(b)      link(b,1)  -1
    z(b)      link(b,2)  -1
    z(b)      work(b)   -1099.9989
    z(c)      Obj       -4
    z(c)      balance(c,0,after.edge)  -1
    z(c)      work(c)   -1399.9985999999999
    z(d)      Obj       -2
    z(d)      link(d,1)  -1
    z(d)      link(d,2)  -1
    z(d)      link(d,3)  -1
    z(d)      work(d)   -599.99940000000004
    z(e)      Obj       -3
    z(e)      balance(e,0,after.cloud)  -1
    z(e)      work(e)   -899.9991
    z(f)      Obj       -1
    z(f)      link(f,0)  -1
    z(f)      link(f,1)  -1
    z(f)      link(f,2)  -1
    z(f)      work(f)   -499.99950000000001
    x(a,cloud,1,0)  link(a,0)  1
    x(a,cloud,1,0)  capacity(cloud,0)  1
    x(a,cloud,1,0)  work(a)   400
    x(a,cloud,1,1)  link(a,1)  1
    x(a,cloud,1,1)  capacity(cloud,1)  1
    x(a,cloud,1,1)  work(a)   400
    x(a,cloud,2,0)  link(a,0)  1
    x(a,cloud,2,0)  capacity(cloud,0)  2
    x(a,cloud,2,0)  work(a)   699.99929999999995
    x(a,cloud,2,1)  link(a,1)  1
    x(a,cloud,2,1)  capacity(cloud,1)  2
    x(a,cloud,2,1)  work(a)   699.99929999999995
    x(a,edge,1,0)  link(a,0)  1
    x(a,edge,1,0)  capacity(edge,0)  1
    x(a,edge,1,0)  work(a)   300
    x(a,edge,1,1)  link(a,1)  1
    x(a,edge,1,1)  capacity(edge,1)  1
    x(a,edge,1,1)  work(a)   300
    x(b,cloud,1,0)  link(b,0)  1
    x(b,cloud,1,0)  capacity(cloud,0)  1
    x(b,cloud,1,0)  work(b)   300
    x(b,cloud,1,1)  link(b,1)  1
    x(b,cloud,1,1)  capacity(cloud,1)  1
    x(b,cloud,1,1)  work(b)   300
    x(b,cloud,1,2)  link(b,2)  1
    x(b,cloud,1,2)  capacity(cloud,2)  1
    x(b,cloud,1,2)  work(b)   300
    x(b,cloud,2,0)  link(b,0)  1
    x(b,cloud,2,0)  capacity(cloud,0)  2
    x(b,cloud,2,0)  work(b)   500
    x(b,cloud,2,1)  link(b,1)  1
    x(b,cloud,2,1)  capacity(cloud,1)  2
    x(b,cloud,2,1)  work(b)   500
    x(b,cloud,2,2)  link(b,2)  1
    x(b,cloud,2,2)  capacity(cloud,2)  2
    x(b,cloud,2,2)  work(b)   500
    x(b,edge,1,0)  link(b,0)  1
    x(b,edge,1,0)  capacity(edge,0)  1
    x(b,edge,1,0)  work(b)   200
    x(b,edge,1,1)  link(b,1)  1
    x(b,edge,1,1)  capacity(edge,1)  1
    x(b,edge,1,1)  work(b)   200
    x(b,edge,1,2)  link(b,2)  1
    x(b,edge,1,2)  capacity(edge,2)  1
    x(b,edge,1,2)  work(b)   200
    x(d,cloud,1,1)  link(d,1)  1
    x(d,cloud,1,1)  capacity(cloud,1)  1
    x(d,cloud,1,1)  work(d)   300
    x(d,cloud,1,2)  link(d,2)  1
    x(d,cloud,1,2)  capacity(cloud,2)  1
    x(d,cloud,1,2)  work(d)   300
    x(d,cloud,1,3)  link(d,3)  1
    x(d,cloud,1,3)  capacity(cloud,3)  1
    x(d,cloud,1,3)  work(d)   150
    x(d,cloud,2,1)  link(d,1)  1
    x(d,cloud,2,1)  capacity(cloud,1)  2
    x(d,cloud,2,1)  work(d)   500
    x(d,cloud,2,2)  link(d,2)  1
    x(d,cloud,2,2)  capacity(cloud,2)  2
    x(d,cloud,2,2)  work(d)   500
    x(d,cloud,2,3)  link(d,3)  1
    x(d,cloud,2,3)  capacity(cloud,3)  2
    x(d,cloud,2,3)  work(d)   250
    x(d,edge,1,1)  link(d,1)  1
    x(d,edge,1,1)  capacity(edge,1)  1
    x(d,edge,1,1)  work(d)   200
    x(d,edge,1,2)  link(d,2)  1
    x(d,edge,1,2)  capacity(edge,2)  1
    x(d,edge,1,2)  work(d)   200
    x(f,cloud,1,0)  link(f,0)  1
    x(f,cloud,1,0)  capacity(cloud,0)  1
    x(f,cloud,1,0)  work(f)   200
    x(f,cloud,1,1)  link(f,1)  1
    x(f,cloud,1,1)  capacity(cloud,1)  1
    x(f,cloud,1,1)  work(f)   200
    x(f,cloud,1,2)  link(f,2)  1
    x(f,cloud,1,2)  capacity(cloud,2)  1
    x(f,cloud,1,2)  work(f)   100
    x(f,cloud,2,0)  link(f,0)  1
    x(f,cloud,2,0)  capacity(cloud,0)  2
    x(f,cloud,2,0)  work(f)   300
    x(f,cloud,2,1)  link(f,1)  1
    x(f,cloud,2,1)  capacity(cloud,1)  2
    x(f,cloud,2,1)  work(f)   300
    x(f,cloud,2,2)  link(f,2)  1
    x(f,cloud,2,2)  capacity(cloud,2)  2
    x(f,cloud,2,2)  work(f)   150
    x(f,edge,1,0)  link(f,0)  1
    x(f,edge,1,0)  capacity(edge,0)  1
    x(f,edge,1,0)  work(f)   100
    x(f,edge,1,1)  link(f,1)  1
    x(f,edge,1,1)  capacity(edge,1)  1
    x(f,edge,1,1)  work(f)   100
    x(f,edge,1,2)  link(f,2)  1
    x(f,edge,1,2)  capacity(edge,2)  1
    x(f,edge,1,2)  work(f)   50
    start(c,cloud,1,1,after.cloud)  balance(c,1,after.cloud)  1
    start(c,cloud,1,1,after.cloud)  balance(c,2,after.cloud)  -1
    start(c,cloud,1,1,after.cloud)  go_on(c,cloud,1,2)  -1
    start(c,cloud,1,1,after.cloud)  capacity(cloud,1)  1
    start(c,cloud,1,1,after.cloud)  work(c)   450
    start(c,cloud,1,2,after.cloud)  balance(c,2,after.cloud)  1
    start(c,cloud,1,2,after.cloud)  balance(c,3,after.cloud)  -1
    start(c,cloud,1,2,after.cloud)  go_on(c,cloud,1,3)  -1
    start(c,cloud,1,2,after.cloud)  capacity(cloud,2)  1
    start(c,cloud,1,2,after.cloud)  work(c)   450
    start(c,cloud,1,3,after.cloud)  balance(c,3,after.cloud)  1
    start(c,cloud,1,3,after.cloud)  capacity(cloud,3)  1
    start(c,cloud,1,3,after.cloud)  work(c)   450
    start(c,cloud,2,1,after.cloud)  balance(c,1,after.cloud)  1
    start(c,cloud,2,1,after.cloud)  balance(c,2,after.cloud)  -1
    start(c,cloud,2,1,after.cloud)  go_on(c,cloud,2,2)  -1
    start(c,cloud,2,1,after.cloud)  capacity(cloud,1)  2
    start(c,cloud,2,1,after.cloud)  work(c)   810
    start(c,cloud,2,2,after.cloud)  balance(c,2,after.cloud)  1
    start(c,cloud,2,2,after.cloud)  balance(c,3,after.cloud)  -1
    start(c,cloud,2,2,after.cloud)  go_on(c,cloud,2,3)  -1
    start(c,cloud,2,2,after.cloud)  capacity(cloud,2)  2
    start(c,cloud,2,2,after.cloud)  work(c)   810
    start(c,cloud,2,3,after.cloud)  balance(c,3,after.cloud)  1
    start(c,cloud,2,3,after.cloud)  capacity(cloud,3)  2
    start(c,cloud,2,3,after.cloud)  work(c)   810
    start(c,edge,1,1,after.cloud)  balance(c,1,after.cloud)  1
    start(c,edge,1,1,after.cloud)  balance(c,2,after.edge)  -1
    start(c,edge,1,1,after.cloud)  go_on(c,edge,1,2)  -1
    start(c,edge,1,1,after.cloud)  capacity(edge,1)  1
    start(c,edge,1,1,after.cloud)  work(c)   280
    start(c,edge,1,2,after.cloud)  balance(c,2,after.cloud)  1
    start(c,edge,1,2,after.cloud)  balance(c,3,after.edge)  -1
    start(c,edge,1,2,after.cloud)  capacity(edge,2)  1
    start(c,edge,1,2,after.cloud)  work(c)   280
    start(e,cloud,1,0,after.cloud)  balance(e,0,after.cloud)  1
    start(e,cloud,1,0,after.cloud)  balance(e,1,after.cloud)  -1
    start(e,cloud,1,0,after.cloud)  go_on(e,cloud,1,1)  -1
    start(e,cloud,1,0,after.cloud)  capacity(cloud,0)  1
    start(e,cloud,1,0,after.cloud)  work(e)   320
    start(e,cloud,1,1,after.cloud)  balance(e,1,after.cloud)  1
    start(e,cloud,1,1,after.cloud)  balance(e,2,after.cloud)  -1
    start(e,cloud,1,1,after.cloud)  go_on(e,cloud,1,2)  -1
    start(e,cloud,1,1,after.cloud)  capacity(cloud,1)  1
    start(e,cloud,1,1,after.cloud)  work(e)   320
    start(e,cloud,1,2,after.cloud)  balance(e,2,after.cloud)  1
    start(e,cloud,1,2,after.cloud)  balance(e,3,after.cloud)  -1
    start(e,cloud,1,2,after.cloud)  go_on(e,cloud,1,3)  -1
    start(e,cloud,1,2,after.cloud)  capacity(cloud,2)  1
    start(e,cloud,1,2,after.cloud)  work(e)   320
    start(e,cloud,1,3,after.cloud)  balance(e,3,after.cloud)  1
    start(e,cloud,1,3,after.cloud)  capacity(cloud,3)  1
    start(e,cloud,1,3,after.cloud)  work(e)   320
    start(e,cloud,2,0,after.cloud)  balance(e,0,after.cloud)  1
    start(e,cloud,2,0,after.cloud)  balance(e,1,after.cloud)  -1
    start(e,cloud,2,0,after.cloud)  go_on(e,cloud,2,1)  -1
    start(e,cloud,2,0,after.cloud)  capacity(cloud,0)  2
    start(e,cloud,2,0,after.cloud)  work(e)   560
    start(e,cloud,2,1,after.cloud)  balance(e,1,after.cloud)  1
    start(e,cloud,2,1,after.cloud)  balance(e,2,after.cloud)  -1
    start(e,cloud,2,1,after.cloud)  go_on(e,cloud,2,2)  -1
    start(e,cloud,2,1,after.cloud)  capacity(cloud,1)  2
    start(e,cloud,2,1,after.cloud)  work(e)   560
    start(e,cloud,2,2,after.cloud)  balance(e,2,after.cloud)  1
    start(e,cloud,2,2,after.cloud)  balance(e,3,after.cloud)  -1
    start(e,cloud,2,2,after.cloud)  go_on(e,cloud,2,3)  -1
    start(e,cloud,2,2,after.cloud)  capacity(cloud,2)  2
    start(e,cloud,2,2,after.cloud)  work(e)   560
    start(e,cloud,2,3,after.cloud)  balance(e,3,after.cloud)  1
    start(e,cloud,2,3,after.cloud)  capacity(cloud,3)  2
    start(e,cloud,2,3,after.cloud)  work(e)   560
    start(e,edge,1,0,after.cloud)  balance(e,0,after.cloud)  1
    start(e,edge,1,0,after.cloud)  balance(e,1,after.edge)  -1
    start(e,edge,1,0,after.cloud)  go_on(e,edge,1,1)  -1
    start(e,edge,1,0,after.cloud)  capacity(edge,0)  1
    start(e,edge,1,0,after.cloud)  work(e)   180
    start(e,edge,1,1,after.cloud)  balance(e,1,after.cloud)  1
    start(e,edge,1,1,after.cloud)  balance(e,2,after.edge)  -1
    start(e,edge,1,1,after.cloud)  go_on(e,edge,1,2)  -1
    start(e,edge,1,1,after.cloud)  capacity(edge,1)  1
    start(e,edge,1,1,after.cloud)  work(e)   180
    start(e,edge,1,2,after.cloud)  balance(e,2,after.cloud)  1
    start(e,edge,1,2,after.cloud)  balance(e,3,after.edge)  -1
    start(e,edge,1,2,after.cloud)  capacity(edge,2)  1
    start(e,edge,1,2,after.cloud)  work(e)   180
    start(c,cloud,1,0,after.edge)  balance(c,1,after.cloud)  -1
    start(c,cloud,1,0,after.edge)  balance(c,0,after.edge)  1
    start(c,cloud,1,0,after.edge)  go_on(c,cloud,1,1)  -1
    start(c,cloud,1,0,after.edge)  capacity(cloud,0)  1
    start(c,cloud,1,0,after.edge)  work(c)   350
    start(c,cloud,1,1,after.edge)  balance(c,2,after.cloud)  -1
    start(c,cloud,1,1,after.edge)  balance(c,1,after.edge)  1
    start(c,cloud,1,1,after.edge)  go_on(c,cloud,1,2)  -1
    start(c,cloud,1,1,after.edge)  capacity(cloud,1)  1
    start(c,cloud,1,1,after.edge)  work(c)   350
    start(c,cloud,1,2,after.edge)  balance(c,3,after.cloud)  -1
    start(c,cloud,1,2,after.edge)  balance(c,2,after.edge)  1
    start(c,cloud,1,2,after.edge)  go_on(c,cloud,1,3)  -1
    start(c,cloud,1,2,after.edge)  capacity(cloud,2)  1
    start(c,cloud,1,2,after.edge)  work(c)   350
    start(c,cloud,1,3,after.edge)  balance(c,3,after.edge)  1
    start(c,cloud,1,3,after.edge)  capacity(cloud,3)  1
    start(c,cloud,1,3,after.edge)  work(c)   350
    start(c,cloud,2,0,after.edge)  balance(c,1,after.cloud)  -1
    start(c,cloud,2,0,after.edge)  balance(c,0,after.edge)  1
    start(c,cloud,2,0,after.edge)  go_on(c,cloud,2,1)  -1
    start(c,cloud,2,0,after.edge)  capacity(cloud,0)  2
    start(c,cloud,2,0,after.edge)  work(c)   630
    start(c,cloud,2,1,after.edge)  balance(c,2,after.cloud)  -1
    start(c,cloud,2,1,after.edge)  balance(c,1,after.edge)  1
    start(c,cloud,2,1,after.edge)  go_on(c,cloud,2,2)  -1
    start(c,cloud,2,1,after.edge)  capacity(cloud,1)  2
    start(c,cloud,2,1,after.edge)  work(c)   630
    start(c,cloud,2,2,after.edge)  balance(c,3,after.cloud)  -1
    start(c,cloud,2,2,after.edge)  balance(c,2,after.edge)  1
    start(c,cloud,2,2,after.edge)  go_on(c,cloud,2,3)  -1
    start(c,cloud,2,2,after.edge)  capacity(cloud,2)  2
    start(c,cloud,2,2,after.edge)  work(c)   630
    start(c,cloud,2,3,after.edge)  balance(c,3,after.edge)  1
    start(c,cloud,2,3,after.edge)  capacity(cloud,3)  2
    start(c,cloud,2,3,after.edge)  work(c)   630
    start(c,edge,1,0,after.edge)  balance(c,0,after.edge)  1
    start(c,edge,1,0,after.edge)  balance(c,1,after.edge)  -1
    start(c,edge,1,0,after.edge)  go_on(c,edge,1,1)  -1
    start(c,edge,1,0,after.edge)  capacity(edge,0)  1
    start(c,edge,1,0,after.edge)  work(c)   360
    start(c,edge,1,1,after.edge)  balance(c,1,after.edge)  1
    start(c,edge,1,1,after.edge)  balance(c,2,after.edge)  -1
    start(c,edge,1,1,after.edge)  go_on(c,edge,1,2)  -1
    start(c,edge,1,1,after.edge)  capacity(edge,1)  1
    start(c,edge,1,1,after.edge)  work(c)   360
    start(c,edge,1,2,after.edge)  balance(c,2,after.edge)  1
    start(c,edge,1,2,after.edge)  balance(c,3,after.edge)  -1
    start(c,edge,1,2,after.edge)  capacity(edge,2)  1
    start(c,edge,1,2,after.edge)  work(c)   360
    start(e,cloud,1,1,after.edge)  balance(e,2,after.cloud)  -1
    start(e,cloud,1,1,after.edge)  balance(e,1,after.edge)  1
    start(e,cloud,1,1,after.edge)  go_on(e,cloud,1,2)  -1
    start(e,cloud,1,1,after.edge)  capacity(cloud,1)  1
    start(e,cloud,1,1,after.edge)  work(e)   240
    start(e,cloud,1,2,after.edge)  balance(e,3,after.cloud)  -1
    start(e,cloud,1,2,after.edge)  balance(e,2,after.edge)  1
    start(e,cloud,1,2,after.edge)  go_on(e,cloud,1,3)  -1
    start(e,cloud,1,2,after.edge)  capacity(cloud,2)  1
    start(e,cloud,1,2,after.edge)  work(e)   240
    start(e,cloud,1,3,after.edge)  balance(e,3,after.edge)  1
    start(e,cloud,1,3,after.edge)  capacity(cloud,3)  1
    start(e,cloud,1,3,after.edge)  work(e)   240
    start(e,cloud,2,1,after.edge)  balance(e,2,after.cloud)  -1
    start(e,cloud,2,1,after.edge)  balance(e,1,after.edge)  1
    start(e,cloud,2,1,after.edge)  go_on(e,cloud,2,2)  -1
    start(e,cloud,2,1,after.edge)  capacity(cloud,1)  2
    start(e,cloud,2,1,after.edge)  work(e)   420
    start(e,cloud,2,2,after.edge)  balance(e,3,after.cloud)  -1
    start(e,cloud,2,2,after.edge)  balance(e,2,after.edge)  1
    start(e,cloud,2,2,after.edge)  go_on(e,cloud,2,3)  -1
    start(e,cloud,2,2,after.edge)  capacity(cloud,2)  2
    start(e,cloud,2,2,after.edge)  work(e)   420
    start(e,cloud,2,3,after.edge)  balance(e,3,after.edge)  1
    start(e,cloud,2,3,after.edge)  capacity(cloud,3)  2
    start(e,cloud,2,3,after.edge)  work(e)   420
    start(e,edge,1,1,after.edge)  balance(e,1,after.edge)  1
    start(e,edge,1,1,after.edge)  balance(e,2,after.edge)  -1
    start(e,edge,1,1,after.edge)  go_on(e,edge,1,2)  -1
    start(e,edge,1,1,after.edge)  capacity(edge,1)  1
    start(e,edge,1,1,after.edge)  work(e)   240
    start(e,edge,1,2,after.edge)  balance(e,2,after.edge)  1
    start(e,edge,1,2,after.edge)  balance(e,3,after.edge)  -1
    start(e,edge,1,2,after.edge)  capacity(edge,2)  1
    start(e,edge,1,2,after.edge)  work(e)   240
    x(c,cloud,1,1)  balance(c,1,after.cloud)  1
    x(c,cloud,1,1)  balance(c,2,after.cloud)  -1
    x(c,cloud,1,1)  go_on(c,cloud,1,1)  1
    x(c,cloud,1,1)  go_on(c,cloud,1,2)  -1
    x(c,cloud,1,1)  capacity(cloud,1)  1
    x(c,cloud,1,1)  work(c)   500
    x(c,cloud,1,2)  balance(c,2,after.cloud)  1
    x(c,cloud,1,2)  balance(c,3,after.cloud)  -1
    x(c,cloud,1,2)  go_on(c,cloud,1,2)  1
    x(c,cloud,1,2)  go_on(c,cloud,1,3)  -1
    x(c,cloud,1,2)  capacity(cloud,2)  1
    x(c,cloud,1,2)  work(c)   500
    x(c,cloud,1,3)  balance(c,3,after.cloud)  1
    x(c,cloud,1,3)  go_on(c,cloud,1,3)  1
    x(c,cloud,1,3)  capacity(cloud,3)  1
    x(c,cloud,1,3)  work(c)   500
    x(c,cloud,2,1)  balance(c,1,after.cloud)  1
    x(c,cloud,2,1)  balance(c,2,after.cloud)  -1
    x(c,cloud,2,1)  go_on(c,cloud,2,1)  1
    x(c,cloud,2,1)  go_on(c,cloud,2,2)  -1
    x(c,cloud,2,1)  capacity(cloud,1)  2
    x(c,cloud,2,1)  work(c)   900
    x(c,cloud,2,2)  balance(c,2,after.cloud)  1
    x(c,cloud,2,2)  balance(c,3,after.cloud)  -1
    x(c,cloud,2,2)  go_on(c,cloud,2,2)  1
    x(c,cloud,2,2)  go_on(c,cloud,2,3)  -1
    x(c,cloud,2,2)  capacity(cloud,2)  2
    x(c,cloud,2,2)  work(c)   900
    x(c,cloud,2,3)  balance(c,3,after.cloud)  1
    x(c,cloud,2,3)  go_on(c,cloud,2,3)  1
    x(c,cloud,2,3)  capacity(cloud,3)  2
    x(c,cloud,2,3)  work(c)   900
    x(c,edge,1,1)  balance(c,1,after.edge)  1
    x(c,edge,1,1)  balance(c,2,after.edge)  -1
    x(c,edge,1,1)  go_on(c,edge,1,1)  1
    x(c,edge,1,1)  go_on(c,edge,1,2)  -1
    x(c,edge,1,1)  capacity(edge,1)  1
    x(c,edge,1,1)  work(c)   400
    x(c,edge,1,2)  balance(c,2,after.edge)  1
    x(c,edge,1,2)  balance(c,3,after.edge)  -1
    x(c,edge,1,2)  go_on(c,edge,1,2)  1
    x(c,edge,1,2)  capacity(edge,2)  1
    x(c,edge,1,2)  work(c)   400
    x(e,cloud,1,1)  balance(e,1,after.cloud)  1
    x(e,cloud,1,1)  balance(e,2,after.cloud)  -1
    x(e,cloud,1,1)  go_on(e,cloud,1,1)  1
    x(e,cloud,1,1)  go_on(e,cloud,1,2)  -1
    x(e,cloud,1,1)  capacity(cloud,1)  1
    x(e,cloud,1,1)  work(e)   400
    x(e,cloud,1,2)  balance(e,2,after.cloud)  1
    x(e,cloud,1,2)  balance(e,3,after.cloud)  -1
    x(e,cloud,1,2)  go_on(e,cloud,1,2)  1
    x(e,cloud,1,2)  go_on(e,cloud,1,3)  -1
    x(e,cloud,1,2)  capacity(cloud,2)  1
    x(e,cloud,1,2)  work(e)   400
    x(e,cloud,1,3)  balance(e,3,after.cloud)  1
    x(e,cloud,1,3)  go_on(e,cloud,1,3)  1
    x(e,cloud,1,3)  capacity(cloud,3)  1
    x(e,cloud,1,3)  work(e)   400
    x(e,cloud,2,1)  balance(e,1,after.cloud)  1
    x(e,cloud,2,1)  balance(e,2,after.cloud)  -1
    x(e,cloud,2,1)  go_on(e,cloud,2,1)  1
    x(e,cloud,2,1)  go_on(e,cloud,2,2)  -1
    x(e,cloud,2,1)  capacity(cloud,1)  2
    x(e,cloud,2,1)  work(e)   700
    x(e,cloud,2,2)  balance(e,2,after.cloud)  1
    x(e,cloud,2,2)  balance(e,3,after.cloud)  -1
    x(e,cloud,2,2)  go_on(e,cloud,2,2)  1
    x(e,cloud,2,2)  go_on(e,cloud,2,3)  -1
    x(e,cloud,2,2)  capacity(cloud,2)  2
    x(e,cloud,2,2)  work(e)   700
    x(e,cloud,2,3)  balance(e,3,after.cloud)  1
    x(e,cloud,2,3)  go_on(e,cloud,2,3)  1
    x(e,cloud,2,3)  capacity(cloud,3)  2
    x(e,cloud,2,3)  work(e)   700
    x(e,edge,1,1)  balance(e,1,after.edge)  1
    x(e,edge,1,1)  balance(e,2,after.edge)  -1
    x(e,edge,1,1)  go_on(e,edge,1,1)  1
    x(e,edge,1,1)  go_on(e,edge,1,2)  -1
    x(e,edge,1,1)  capacity(edge,1)  1
    x(e,edge,1,1)  work(e)   300
    x(e,edge,1,2)  balance(e,2,after.edge)  1
    x(e,edge,1,2)  balance(e,3,after.edge)  -1
    x(e,edge,1,2)  go_on(e,edge,1,2)  1
    x(e,edge,1,2)  capacity(edge,2)  1
    x(e,edge,1,2)  work(e)   300
    idle(c,1,after.cloud)  balance(c,1,after.cloud)  1
    idle(c,1,after.cloud)  balance(c,2,after.cloud)  -1
    idle(c,2,after.cloud)  balance(c,2,after.cloud)  1
    idle(c,2,after.cloud)  balance(c,3,after.cloud)  -1
    idle(c,3,after.cloud)  balance(c,3,after.cloud)  1
    idle(e,0,after.cloud)  balance(e,0,after.cloud)  1
    idle(e,0,after.cloud)  balance(e,1,after.cloud)  -1
    idle(e,1,after.cloud)  balance(e,1,after.cloud)  1
    idle(e,1,after.cloud)  balance(e,2,after.cloud)  -1
    idle(e,2,after.cloud)  balance(e,2,after.cloud)  1
    idle(e,2,after.cloud)  balance(e,3,after.cloud)  -1
    idle(e,3,after.cloud)  balance(e,3,after.cloud)  1
    idle(c,0,after.edge)  balance(c,0,after.edge)  1
    idle(c,0,after.edge)  balance(c,1,after.edge)  -1
    idle(c,1,after.edge)  balance(c,1,after.edge)  1
    idle(c,1,after.edge)  balance(c,2,after.edge)  -1
    idle(c,2,after.edge)  balance(c,2,after.edge)  1
    idle(c,2,after.edge)  balance(c,3,after.edge)  -1
    idle(c,3,after.edge)  balance(c,3,after.edge)  1
    idle(e,1,after.edge)  balance(e,1,after.edge)  1
    idle(e,1,after.edge)  balance(e,2,after.edge)  -1
    idle(e,2,after.edge)  balance(e,2,after.edge)  1
    idle(e,2,after.edge)  balance(e,3,after.edge)  -1
    idle(e,3,after.edge)  balance(e,3,after.edge)  1
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     capacity(cloud,0)  3
    RHS_V     capacity(cloud,1)  3
    RHS_V     capacity(cloud,2)  2
    RHS_V     capacity(cloud,3)  3
    RHS_V     capacity(edge,0)  1
    RHS_V     capacity(edge,1)  1
    RHS_V     capacity(edge,2)  1
BOUNDS
 BV BOUND     z(a)    
 FX BOUND     z(b)      1
 BV BOUND     z(c)    
 BV BOUND     z(d)    
 BV BOUND     z(e)    
 BV BOUND     z(f)    
 BV BOUND     x(a,cloud,1,0)
 BV BOUND     x(a,cloud,1,1)
 BV BOUND     x(a,cloud,2,0)
 BV BOUND     x(a,cloud,2,1)
 BV BOUND     x(a,edge,1,0)
 BV BOUND     x(a,edge,1,1)
 BV BOUND     x(b,cloud,1,0)
 BV BOUND     x(b,cloud,1,1)
 BV BOUND     x(b,cloud,1,2)
 BV BOUND     x(b,cloud,2,0)
 BV BOUND     x(b,cloud,2,1)
 BV BOUND     x(b,cloud,2,2)
 BV BOUND     x(b,edge,1,0)
 BV BOUND     x(b,edge,1,1)
 BV BOUND     x(b,edge,1,2)
 BV BOUND     x(d,cloud,1,1)
 BV BOUND     x(d,cloud,1,2)
 BV BOUND     x(d,cloud,1,3)
 BV BOUND     x(d,cloud,2,1)
 BV BOUND     x(d,cloud,2,2)
 BV BOUND     x(d,cloud,2,3)
 BV BOUND     x(d,edge,1,1)
 BV BOUND     x(d,edge,1,2)
 BV BOUND     x(f,cloud,1,0)
 BV BOUND     x(f,cloud,1,1)
 BV BOUND     x(f,cloud,1,2)
 BV BOUND     x(f,cloud,2,0)
 BV BOUND     x(f,cloud,2,1)
 BV BOUND     x(f,cloud,2,2)
 BV BOUND     x(f,edge,1,0)
 BV BOUND     x(f,edge,1,1)
 BV BOUND     x(f,edge,1,2)
 BV BOUND     start(c,cloud,1,1,after.cloud)
 BV BOUND     start(c,cloud,1,2,after.cloud)
 BV BOUND     start(c,cloud,1,3,after.cloud)
 BV BOUND     start(c,cloud,2,1,after.cloud)
 BV BOUND     start(c,cloud,2,2,after.cloud)
 BV BOUND     start(c,cloud,2,3,after.cloud)
 BV BOUND     start(c,edge,1,1,after.cloud)
 BV BOUND     start(c,edge,1,2,after.cloud)
 BV BOUND     start(e,cloud,1,0,after.cloud)
 BV BOUND     start(e,cloud,1,1,after.cloud)
 BV BOUND     start(e,cloud,1,2,after.cloud)
 BV BOUND     start(e,cloud,1,3,after.cloud)
 BV BOUND     start(e,cloud,2,0,after.cloud)
 BV BOUND     start(e,cloud,2,1,after.cloud)
 BV BOUND     start(e,cloud,2,2,after.cloud)
 BV BOUND     start(e,cloud,2,3,after.cloud)
 BV BOUND     start(e,edge,1,0,after.cloud)
 BV BOUND     start(e,edge,1,1,after.cloud)
 BV BOUND     start(e,edge,1,2,after.cloud)
 BV BOUND     start(c,cloud,1,0,after.edge)
 BV BOUND     start(c,cloud,1,1,after.edge)
 BV BOUND     start(c,cloud,1,2,after.edge)
 BV BOUND     start(c,cloud,1,3,after.edge)
 BV BOUND     start(c,cloud,2,0,after.edge)
 BV BOUND     start(c,cloud,2,1,after.edge)
 BV BOUND     start(c,cloud,2,2,after.edge)
 BV BOUND     start(c,cloud,2,3,after.edge)
 BV BOUND     start(c,edge,1,0,after.edge)
 BV BOUND     start(c,edge,1,1,after.edge)
 BV BOUND     start(c,edge,1,2,after.edge)
 BV BOUND     start(e,cloud,1,1,after.edge)
 BV BOUND     start(e,cloud,1,2,after.edge)
 BV BOUND     start(e,cloud,1,3,after.edge)
 BV BOUND     start(e,cloud,2,1,after.edge)
 BV BOUND     start(e,cloud,2,2,after.edge)
 BV BOUND     start(e,cloud,2,3,after.edge)
 BV BOUND     start(e,edge,1,1,after.edge)
 BV BOUND     start(e,edge,1,2,after.edge)
 BV BOUND     x(c,cloud,1,1)
 BV BOUND     x(c,cloud,1,2)
 BV BOUND     x(c,cloud,1,3)
 BV BOUND     x(c,cloud,2,1)
 BV BOUND     x(c,cloud,2,2)
 BV BOUND     x(c,cloud,2,3)
 BV BOUND     x(c,edge,1,1)
 BV BOUND     x(c,edge,1,2)
 BV BOUND     x(e,cloud,1,1)
 BV BOUND     x(e,cloud,1,2)
 BV BOUND     x(e,cloud,1,3)
 BV BOUND     x(e,cloud,2,1)
 BV BOUND     x(e,cloud,2,2)
 BV BOUND     x(e,cloud,2,3)
 BV BOUND     x(e,edge,1,1)
 BV BOUND     x(e,edge,1,2)
 BV BOUND     idle(c,1,after.cloud)
 BV BOUND     idle(c,2,after.cloud)
 BV BOUND     idle(c,3,after.cloud)
 BV BOUND     idle(e,0,after.cloud)
 BV BOUND     idle(e,1,after.cloud)
 BV BOUND     idle(e,2,after.cloud)
 BV BOUND     idle(e,3,after.cloud)
 BV BOUND     idle(c,0,after.edge)
 BV BOUND     idle(c,1,after.edge)
 BV BOUND     idle(c,2,after.edge)
 BV BOUND     idle(c,3,after.edge)
 BV BOUND     idle(e,1,after.edge)
 BV BOUND     idle(e,2,after.edge)
 BV BOUND     idle(e,3,after.edge)
ENDATA
